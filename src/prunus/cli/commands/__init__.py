"""The commands of ``prunus``, one file each."""
