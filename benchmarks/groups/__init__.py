"""What is measured: a module for each group, which says what its variants are and what is to hold."""
