// Rounded twice where the flags are those of the suite, once where a compiler may fuse.
double MultiplyAdd(double a, double b, double c) { return a * b + c; }
