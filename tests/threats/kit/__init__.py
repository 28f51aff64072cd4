"""What a black-box threat case is made of. README.md in the folder above says what there is and how to use it."""
