"""A store of Arrow files, for Trident."""
