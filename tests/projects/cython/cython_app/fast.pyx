def double(int x):
    return 2 * x
