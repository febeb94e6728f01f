"""What scripts/build_site consists of: the sources of the site, the reference of the C interface, the check."""
