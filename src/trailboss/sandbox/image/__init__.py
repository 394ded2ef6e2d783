"""The build of the guest's image: CPython's libraries linked into one module, booted once, its memory kept."""
