"""C's types by the names that OpenSHMEM and NVSHMEM give them; the tables of functions choose from these."""
REAL = {"float": "float", "double": "double", "longdouble": "long double"}
C_INTEGERS = {"char": "char", "schar": "signed char", "short": "short", "int": "int", "long": "long",
              "longlong": "long long", "uchar": "unsigned char", "ushort": "unsigned short", "uint": "unsigned int",
              "ulong": "unsigned long", "ulonglong": "unsigned long long"}
FIXED = {f"{sign}int{bits}": f"{sign}int{bits}_t" for sign in ("", "u") for bits in (8, 16, 32, 64)}
SIZES = {"size": "size_t", "ptrdiff": "ptrdiff_t"}


def chosen(types, names):
    return {name: types[name] for name in names.split()}
