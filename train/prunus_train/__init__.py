"""Data makers and trainers of Prunus; guests of the core, which never imports them."""
