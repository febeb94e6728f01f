"""torchrun_stand_in.py -n COUNT PROGRAM...: starts PEs with torchrun's variables, passes SIGINT on, and waits for all of them. Where
one fails it ends nobody, other than torchrun: the PEs have to."""
import os
import signal
import socket
import subprocess
import sys


def main():
    count, command = int(sys.argv[2]), sys.argv[3:]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    pes = [subprocess.Popen(command, env=os.environ | {
        "RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(count), "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_RUN_ID": "test"}) for rank in range(count)]
    signal.signal(signal.SIGINT, lambda *_: [pe.send_signal(signal.SIGINT) for pe in pes])
    return max(abs(pe.wait()) for pe in pes)


if __name__ == "__main__":
    sys.exit(main())
