// A list in a file, with conditionals and directives of its own, included for what a macro is defined as each time.
// kernels: sum_k, difference_k
#include <string>
#include <vector>

#define CHOICE(name, op) \
    __global__ void name##_k(int *p) { p[0] = p[1] op p[2]; } \
    static void name##_run(std::vector<int> v) { name##_k<<<1, 1>>>(v.data()); }
#include "macro_choices.def"

enum Choices {
#define CHOICE(name, op) name##_choice,
#include "macro_choices.def"
};

static std::string name_of(Choices choice) {
    switch (choice) {
#define CHOICE(name, op) case name##_choice: return #name;
#include "macro_choices.def"
    }
    return "";
}
