// SPDX-FileCopyrightText: 2026 hatch-cuda-kernels contributors
// SPDX-License-Identifier: Apache-2.0
//
// A stand-in for the CUDA driver library (libcuda.so.1), for tests on machines without a GPU.
//
// It decides like a driver which image runs on which device, and executes nothing: a launch is checked,
// logged and forgotten. "Device" memory is host memory. What it pretends to be comes from the environment
// (the module docstring of the package next to this file lists the variables).
//
// Objects are never freed, only marked dead, so that a stale handle gives an error and not a crash.

#define _GNU_SOURCE
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define API __attribute__((visibility("default")))

typedef int CUresult;
typedef int CUdevice;
typedef uintptr_t CUdeviceptr;

enum {
    OK = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    NO_DEVICE = 100,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    NO_BINARY_FOR_GPU = 209,
    INVALID_PTX = 218,
    UNSUPPORTED_PTX_VERSION = 222,
    FILE_NOT_FOUND = 301,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    CONTEXT_IS_DESTROYED = 709,
    NOT_SUPPORTED = 801,
    UNKNOWN = 999,
};

static const struct {
    CUresult code;
    const char *name;
    const char *text;
} errors[] = {
    {0, "CUDA_SUCCESS", "no error"},
    {1, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {2, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {3, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {4, "CUDA_ERROR_DEINITIALIZED", "driver shutting down"},
    {34, "CUDA_ERROR_STUB_LIBRARY", "the library is a stub"},
    {35, "CUDA_ERROR_INSUFFICIENT_DRIVER", "the driver is too old for this function"},
    {46, "CUDA_ERROR_DEVICE_UNAVAILABLE", "the device is busy or unavailable"},
    {100, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {101, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {200, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {201, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {209, "CUDA_ERROR_NO_BINARY_FOR_GPU", "no kernel image is available for execution on the device"},
    {218, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {221, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "PTX JIT compiler library not found"},
    {222, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "the PTX was made with an unsupported toolchain"},
    {223, "CUDA_ERROR_JIT_COMPILATION_DISABLED", "PTX JIT compilation was disabled"},
    {300, "CUDA_ERROR_INVALID_SOURCE", "device kernel source is invalid"},
    {301, "CUDA_ERROR_FILE_NOT_FOUND", "file not found"},
    {400, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {500, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {600, "CUDA_ERROR_NOT_READY", "device not ready"},
    {700, "CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"},
    {701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "too many resources requested for launch"},
    {709, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {719, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {801, "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {802, "CUDA_ERROR_SYSTEM_NOT_READY", "system not yet initialized"},
    {803, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
     "system has an unsupported display driver / cuda driver combination"},
    {804, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
     "forward compatibility was attempted on unsupported hardware"},
    {999, "CUDA_ERROR_UNKNOWN", "unknown error"},
};

// ----------------------------------------------------------------------------------------------------
// Objects

enum kind { CONTEXT = 0x43545831, IMAGE, KERNEL, STREAM, EVENT, POOL };

typedef struct object {
    enum kind kind;
    atomic_bool dead;
} object;

typedef struct context {
    object head;
    int device;
    bool primary;
    int retained;
    unsigned flags;
    unsigned long long id;
} context;

typedef struct arch {
    int number;   // 90 for 9.0
    char suffix;  // 'a', 'f' or 0
} arch;

typedef struct parameter {
    size_t offset, size;
} parameter;

typedef struct image image;

typedef struct kernel {
    object head;
    image *owner;
    char *name;
    parameter *parameters;
    size_t parameter_count;
    int attributes[32];
    bool attribute_set[32];
} kernel;

typedef struct global {
    char *name;
    size_t size;
    void *memory;
} global;

struct image {
    object head;
    bool ptx;
    arch target;
    int major, minor;  // of the compiler for an ELF, of the language for PTX; 0.0 if not stated
    size_t bytes;
    uint64_t hash;
    kernel **kernels;
    size_t kernel_count;
    global *globals;
    size_t global_count;
};

typedef struct stream {
    object head;
    context *ctx;
    unsigned flags;
    int priority;
    unsigned long long id;
} stream;

typedef struct event {
    object head;
    context *ctx;
    struct timespec recorded;
} event;

typedef struct pool {
    object head;
    int device;
} pool;

#define MAX_DEVICES 64
#define MAX_STACK 64

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_int owner_pid;  // the process that initialised the library, 0 before
static atomic_ullong next_id = 1;
static int device_count;
static int capabilities[MAX_DEVICES];  // 90 for 9.0
static context *primaries[MAX_DEVICES];
static pool *pools[MAX_DEVICES];
static _Thread_local context *stack[MAX_STACK];
static _Thread_local int depth;

static void *allocate(size_t size) {
    void *p = calloc(1, size ? size : 1);
    if (!p) {
        fputs("fake CUDA driver: out of memory\n", stderr);
        abort();
    }
    return p;
}

static void *grow(void *p, size_t size) {
    p = realloc(p, size);
    if (!p) {
        fputs("fake CUDA driver: out of memory\n", stderr);
        abort();
    }
    return p;
}

static char *copy_name(const char *text, size_t length) {
    char *p = allocate(length + 1);
    memcpy(p, text, length);
    return p;
}

static void *alive(void *handle, enum kind kind) {
    object *o = handle;
    return o && o->kind == kind && !o->dead ? o : NULL;
}

// ----------------------------------------------------------------------------------------------------
// Environment and log

static int driver_version(void) {
    const char *text = getenv("FAKE_CUDA_DRIVER");
    int major, minor;
    if (!text || sscanf(text, "%d.%d", &major, &minor) != 2 || major < 1 || minor < 0 || minor > 99)
        return 13050;
    return major * 1000 + minor * 10;
}

static int environment_number(const char *name, int otherwise) {
    const char *text = getenv(name);
    return text && *text ? atoi(text) : otherwise;
}

static bool read_devices(void) {
    const char *text = getenv("FAKE_CUDA_DEVICES");
    if (!text) text = "9.0";
    device_count = 0;
    while (*text) {
        int major, minor, used = 0;
        if (sscanf(text, " %d.%d %n", &major, &minor, &used) != 2 || !used || device_count == MAX_DEVICES)
            return false;
        capabilities[device_count++] = major * 10 + minor;
        text += used;
        if (*text == ',') text++;
        else if (*text) return false;
    }
    return true;
}

static void arch_text(arch a, bool ptx, char out[24]) {
    snprintf(out, 24, "%s_%d%s", ptx ? "compute" : "sm", a.number,
             a.suffix == 'a'   ? "a"
             : a.suffix == 'f' ? "f"
                               : "");
}

static void append_quoted(char *line, size_t *used, size_t room, const char *text) {
    static const char hex[] = "0123456789abcdef";
    if (*used < room) line[(*used)++] = '"';
    for (; *text && *used + 8 < room; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '"' || c == '\\') {
            line[(*used)++] = '\\';
            line[(*used)++] = (char)c;
        } else if (c < 32 || c > 126) {
            memcpy(line + *used, "\\u00", 4);
            line[*used + 4] = hex[c >> 4];
            line[*used + 5] = hex[c & 15];
            *used += 6;
        } else {
            line[(*used)++] = (char)c;
        }
    }
    if (*used < room) line[(*used)++] = '"';
}

// One JSON object a line, in a single write: lines of threads and processes do not mix. `format` names the
// fields, each with its kind: "name:s" for a string, "name:d" for an int, "name:z" for a size_t. Returns
// `result`.
static CUresult logged(CUresult result, const char *call, const char *format, ...) {
    const char *path = getenv("FAKE_CUDA_LOG");
    if (!path || !*path) return result;
    char line[16384];
    const size_t room = sizeof line - 128;
    size_t used = (size_t)snprintf(line, room, "{\"call\": \"%s\", \"pid\": %d, \"thread\": %ld", call,
                                   (int)getpid(), (long)syscall(SYS_gettid));
    va_list arguments;
    va_start(arguments, format);
    while (*format) {
        const char *colon = strchr(format, ':');
        char type = colon[1];
        if (used + 128 > room) break;
        used += (size_t)snprintf(line + used, room - used, ", \"%.*s\": ", (int)(colon - format), format);
        if (type == 's') append_quoted(line, &used, room, va_arg(arguments, const char *));
        else if (type == 'd')
            used += (size_t)snprintf(line + used, room - used, "%d", va_arg(arguments, int));
        else used += (size_t)snprintf(line + used, room - used, "%zu", va_arg(arguments, size_t));
        format = colon + 2;
        if (*format == ' ') format++;
    }
    va_end(arguments);
    used += (size_t)snprintf(line + used, sizeof line - used, ", \"result\": %d}\n", result);
    int file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) {
        ssize_t written = write(file, line, used);
        (void)written;
        close(file);
    }
    return result;
}

// An error the environment asks for, for images of one architecture: "sm_90:209,compute_80:218".
static CUresult asked_refusal(const char *name) {
    const char *text = getenv("FAKE_CUDA_REFUSE");
    size_t length = strlen(name);
    while (text && *text) {
        while (*text == ',' || *text == ' ') text++;
        if (!strncmp(text, name, length) && text[length] == ':') return atoi(text + length + 1);
        text = strchr(text, ',');
    }
    return OK;
}

// ----------------------------------------------------------------------------------------------------
// Which image runs where

static bool is_tegra(int capability) {
    static const int parts[] = {53, 62, 72, 87, 101, 110};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i] == capability) return true;
    return false;
}

static bool in_family(int target, int capability) {
    static const struct {
        int target, capability;
    } table[] = {{100, 100}, {100, 103}, {100, 107}, {101, 101}, {103, 103},
                 {107, 107}, {110, 110}, {120, 120}, {120, 121}, {121, 121}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].target == target && table[i].capability == capability) return true;
    return false;
}

static bool cubin_runs(arch a, int capability) {
    if (a.suffix == 'a') return a.number == capability;
    if (a.suffix == 'f') return in_family(a.number, capability);
    if (is_tegra(a.number) || is_tegra(capability)) return a.number == capability;
    return a.number / 10 == capability / 10 && a.number <= capability;
}

static bool ptx_runs(arch a, int capability) {
    if (a.suffix == 'a') return a.number == capability;
    if (a.suffix == 'f') return in_family(a.number, capability);
    return a.number <= capability;
}

// The newest PTX version, times ten, that a driver of this version reads.
static int ptx_limit(int driver) {
    static const struct {
        int driver, ptx;
    } table[] = {{10000, 63}, {10010, 64}, {10020, 65}, {11000, 70}, {11010, 71}, {11020, 72},
                 {11030, 73}, {11040, 74}, {11050, 75}, {11060, 76}, {11070, 77}, {11080, 78},
                 {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84}, {12050, 85},
                 {12060, 85}, {12070, 86}, {12080, 87}, {12090, 88}};
    if (driver >= 13000) return (driver / 1000 - 4) * 10 + driver % 1000 / 10;
    int limit = 60;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (table[i].driver <= driver) limit = table[i].ptx;
    return limit;
}

static CUresult runs_on(const image *i, int capability) {
    if (i->ptx) return ptx_runs(i->target, capability) ? OK : NO_BINARY_FOR_GPU;
    if (i->major > driver_version() / 1000) return NO_BINARY_FOR_GPU;
    return cubin_runs(i->target, capability) ? OK : NO_BINARY_FOR_GPU;
}

// ----------------------------------------------------------------------------------------------------
// Reading images. The caller's length is not known here, as in the real interface, so memory is read through
// the kernel, which answers with a short read instead of a fault.

static size_t peek(void *to, const void *from, size_t size) {
    int file = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        memcpy(to, from, size);
        return size;
    }
    size_t done = 0;
    while (done < size) {
        ssize_t n = pread(file, (char *)to + done, size - done, (off_t)((uintptr_t)from + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        done += (size_t)n;
    }
    close(file);
    return done;
}

static uint64_t fnv1a(const unsigned char *data, size_t size) {
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 0x100000001b3u;
    return hash;
}

static kernel *add_kernel(image *i, const char *name, size_t length) {
    kernel *k = allocate(sizeof *k);
    k->head.kind = KERNEL;
    k->owner = i;
    k->name = copy_name(name, length);
    i->kernels = grow(i->kernels, (i->kernel_count + 1) * sizeof *i->kernels);
    i->kernels[i->kernel_count++] = k;
    return k;
}

static kernel *find_kernel(const image *i, const char *name) {
    for (size_t n = 0; n < i->kernel_count; n++)
        if (!strcmp(i->kernels[n]->name, name)) return i->kernels[n];
    return NULL;
}

static void add_global(image *i, const char *name, size_t length, size_t size) {
    i->globals = grow(i->globals, (i->global_count + 1) * sizeof *i->globals);
    i->globals[i->global_count++] = (global){copy_name(name, length), size, allocate(size)};
}

static void set_parameter(kernel *k, size_t index, size_t offset, size_t size) {
    if (index > 4096) return;
    if (index >= k->parameter_count) {
        k->parameters = grow(k->parameters, (index + 1) * sizeof *k->parameters);
        memset(k->parameters + k->parameter_count, 0,
               (index + 1 - k->parameter_count) * sizeof *k->parameters);
        k->parameter_count = index + 1;
    }
    k->parameters[index] = (parameter){offset, size};
}

static bool inside(uint64_t offset, uint64_t size, uint64_t total) {
    return offset <= total && size <= total - offset;
}

static void read_kernel_info(kernel *k, const unsigned char *p, size_t size) {
    size_t at = 0;
    while (at + 4 <= size) {
        unsigned format = p[at], attribute = p[at + 1], length = p[at + 2] | (unsigned)p[at + 3] << 8;
        at += 4;
        if (format != 4) continue;
        if (length > size - at) return;
        if (attribute == 0x17 && length == 12) {  // one parameter: its ordinal, offset and size
            const unsigned char *q = p + at;
            uint32_t word = q[8] | (uint32_t)q[9] << 8 | (uint32_t)q[10] << 16 | (uint32_t)q[11] << 24;
            set_parameter(k, q[4] | (size_t)q[5] << 8, q[6] | (size_t)q[7] << 8, word >> 18);
        }
        at += length;
    }
}

static void read_toolkit_note(image *i, const char *text, size_t size) {
    for (size_t at = 0; at + 10 < size; at++) {
        const char *p = text + at;
        if (!memcmp(p, "-arch", 5) && (p[5] == ' ' || p[5] == '=') && !strncmp(p + 6, "sm_", 3) &&
            !i->target.suffix) {
            const char *end = p + 9;
            while (end < text + size && isdigit((unsigned char)*end)) end++;
            if (end < text + size && (*end == 'a' || *end == 'f')) i->target.suffix = *end;
        } else if (!i->major && p[0] == 'V' && isdigit((unsigned char)p[1])) {
            int major, minor, patch;
            char copy[32] = {0};
            memcpy(copy, p + 1, size - at - 1 < 31 ? size - at - 1 : 31);
            if (sscanf(copy, "%d.%d.%d", &major, &minor, &patch) == 3) i->major = major, i->minor = minor;
        }
    }
}

static CUresult read_elf(image *i, const void *code) {
    Elf64_Ehdr header;
    if (peek(&header, code, sizeof header) != sizeof header) return INVALID_IMAGE;
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return INVALID_IMAGE;
    if (header.e_machine != 190 || !header.e_shnum || header.e_shentsize != sizeof(Elf64_Shdr))
        return INVALID_IMAGE;
    if (header.e_phnum && header.e_phentsize != sizeof(Elf64_Phdr)) return INVALID_IMAGE;
    const uint64_t limit = (uint64_t)1 << 30;
    uint64_t sections_size = (uint64_t)header.e_shnum * sizeof(Elf64_Shdr);
    uint64_t programs_size = (uint64_t)header.e_phnum * sizeof(Elf64_Phdr);
    if (!inside(header.e_shoff, sections_size, limit) || !inside(header.e_phoff, programs_size, limit))
        return INVALID_IMAGE;
    uint64_t total = header.e_shoff + sections_size;
    if (header.e_phnum && header.e_phoff + programs_size > total) total = header.e_phoff + programs_size;
    if (total < sizeof header) return INVALID_IMAGE;

    // First the section table, which may say that the image is longer still, then all of it.
    Elf64_Shdr *sections = allocate(sections_size);
    if (peek(sections, (const char *)code + header.e_shoff, sections_size) != sections_size) goto bad_table;
    for (unsigned n = 1; n < header.e_shnum; n++) {
        if (sections[n].sh_type == SHT_NOBITS) continue;
        if (!inside(sections[n].sh_offset, sections[n].sh_size, limit)) goto bad_table;
        if (sections[n].sh_offset + sections[n].sh_size > total)
            total = sections[n].sh_offset + sections[n].sh_size;
    }
    unsigned char *data = allocate(total + 1);
    if (peek(data, code, total) != total) goto bad;
    if (memcmp(data + header.e_shoff, sections, sections_size)) goto bad;

    const Elf64_Shdr *names = &sections[header.e_shstrndx];
    if (header.e_shstrndx == 0 || header.e_shstrndx >= header.e_shnum || names->sh_type != SHT_STRTAB)
        goto bad;
    if (!names->sh_size || data[names->sh_offset] || data[names->sh_offset + names->sh_size - 1]) goto bad;
    if (sections[0].sh_type != SHT_NULL || sections[0].sh_size) goto bad;
    for (unsigned n = 0; n < header.e_phnum; n++) {
        Elf64_Phdr program;
        memcpy(&program, data + header.e_phoff + n * sizeof program, sizeof program);
        if (!program.p_type || !inside(program.p_offset, program.p_filesz, total)) goto bad;
        if (program.p_type == PT_PHDR && program.p_offset != header.e_phoff) goto bad;
        if (program.p_align & (program.p_align - 1)) goto bad;
    }

    i->bytes = total;
    i->hash = fnv1a(data, total);
    // CUDA 13, and CUDA 12 from 10.0 on, write the newer layout, whose note names the suffix and the
    // compiler. The older one has no note, but a flag for the suffix.
    if (header.e_ident[EI_OSABI] == 0x41) {
        i->target.number = header.e_flags >> 8 & 0xff;
    } else if (header.e_ident[EI_OSABI] == 51) {
        i->target.number = header.e_flags & 0xff;
        if (header.e_flags & 0x800) i->target.suffix = 'a';
    } else {
        goto bad;
    }

    for (int pass = 0; pass < 2; pass++) {
        for (unsigned n = 1; n < header.e_shnum; n++) {
            const Elf64_Shdr *s = &sections[n];
            if (s->sh_name >= names->sh_size || s->sh_type == SHT_NULL) goto bad;
            if (s->sh_addralign & (s->sh_addralign - 1)) goto bad;
            const char *name = (const char *)data + names->sh_offset + s->sh_name;
            if (pass == 0) {
                if (!strncmp(name, ".text.", 6) && name[6]) add_kernel(i, name + 6, strlen(name + 6));
                if (!strcmp(name, ".note.nv.tkinfo") && s->sh_type != SHT_NOBITS)
                    read_toolkit_note(i, (const char *)data + s->sh_offset, s->sh_size);
            } else if (!strncmp(name, ".nv.info.", 9) && s->sh_type != SHT_NOBITS) {
                kernel *k = find_kernel(i, name + 9);
                if (k) read_kernel_info(k, data + s->sh_offset, s->sh_size);
            } else if (s->sh_type == SHT_SYMTAB) {
                if (s->sh_link >= header.e_shnum || s->sh_size % sizeof(Elf64_Sym)) goto bad;
                const Elf64_Shdr *t = &sections[s->sh_link];
                if (t->sh_type != SHT_STRTAB || !t->sh_size || data[t->sh_offset + t->sh_size - 1]) goto bad;
                for (uint64_t at = 0; at < s->sh_size; at += sizeof(Elf64_Sym)) {
                    Elf64_Sym symbol;
                    memcpy(&symbol, data + s->sh_offset + at, sizeof symbol);
                    if (symbol.st_name >= t->sh_size) goto bad;
                    if (ELF64_ST_TYPE(symbol.st_info) != STT_OBJECT || symbol.st_shndx == SHN_UNDEF) continue;
                    if (symbol.st_size > limit) goto bad;
                    const char *text = (const char *)data + t->sh_offset + symbol.st_name;
                    if (*text) add_global(i, text, strlen(text), symbol.st_size);
                }
            }
        }
    }
    if (!i->major && header.e_ident[EI_OSABI] == 51) i->major = 12;
    free(data);
    free(sections);
    return OK;
bad:
    free(data);
bad_table:
    free(sections);
    return INVALID_IMAGE;
}

static bool word_character(char c) {
    return isalnum((unsigned char)c) || c == '_' || c == '$' || c == '%' || c == '.';
}

static size_t type_size(const char *word, size_t length) {
    size_t bits = 0;
    for (size_t n = 1; n < length; n++)
        if (isdigit((unsigned char)word[n])) bits = bits * 10 + (size_t)(word[n] - '0');
    return bits >= 8 && bits <= 128 ? bits / 8 : 0;
}

// One declaration, from `p` up to a character of `stops`: `.param .align 8 .b8 name[24]`. Sets the name and
// the size.
static const char *declaration(const char *p, const char *stops, const char **name, size_t *length,
                               size_t *size, size_t *alignment) {
    size_t unit = 0, given = 0;
    bool of_target = false;  // after `.ptr` an alignment is that of what the pointer points to
    *name = NULL;
    *size = 0;
    while (*p && !strchr(stops, *p)) {
        const char *word = p;
        if (*p == '[') {
            size_t count = (size_t)strtoull(p + 1, NULL, 10);
            unit *= count ? count : 1;
            p += strcspn(p, "]");
            continue;
        }
        while (word_character(*p)) p++;
        if (p == word) {
            p++;
            continue;
        }
        if (*word == '.') {
            if (p - word == 4 && !strncmp(word, ".ptr", 4)) of_target = true;
            if (p - word == 6 && !strncmp(word, ".align", 6))
                given = of_target ? 0 : (size_t)strtoull(p, NULL, 10);
            else if (type_size(word, (size_t)(p - word)))
                *alignment = unit = type_size(word, (size_t)(p - word));
        } else if (!isdigit((unsigned char)*word)) {
            *name = word;
            *length = (size_t)(p - word);
        }
    }
    *size = unit;
    if (given) *alignment = given;
    return p;
}

static CUresult read_ptx(image *i, const char *code) {
    size_t room = 0, size = 0;
    char *text = NULL;
    for (;;) {  // up to the NUL, never past a page that is not there
        size_t step = 4096 - (((uintptr_t)code + size) & 4095);
        if (size + step + 1 > room) text = grow(text, room = (size + step) * 2 + 1);
        size_t got = peek(text + size, code + size, step);
        const char *end = memchr(text + size, 0, got);
        if (end) {
            size = (size_t)(end - text);
            break;
        }
        size += got;
        if (got < step) break;
    }
    if (!text) return INVALID_PTX;
    text[size] = 0;
    i->ptx = true;
    i->bytes = size;
    i->hash = fnv1a((const unsigned char *)text, size);
    CUresult result = size ? INVALID_PTX : INVALID_IMAGE;
    // What does not start like text is no PTX, but something broken.
    for (size_t n = 0; n < size && n < 4; n++)
        if (!isspace((unsigned char)text[n]) && !isprint((unsigned char)text[n])) result = INVALID_IMAGE;
    if (result == INVALID_IMAGE) goto done;
    for (char *p = text; *p;) {  // comments become blanks
        if (p[0] == '/' && p[1] == '/') {
            while (*p && *p != '\n') *p++ = ' ';
        } else if (p[0] == '/' && p[1] == '*') {
            while (*p && !(p[0] == '*' && p[1] == '/')) *p++ = ' ';
            if (*p) p[0] = p[1] = ' ';
        } else {
            p++;
        }
    }
    int braces = 0, version_seen = 0;
    for (const char *p = text; *p;) {
        if (*p == '"') {
            p += 1 + strcspn(p + 1, "\"");
            if (*p) p++;
            continue;
        }
        if (*p == '{') braces++;
        if (*p == '}') braces--;
        if (!word_character(*p)) {
            p++;
            continue;
        }
        const char *word = p;
        while (word_character(*p)) p++;
        size_t length = (size_t)(p - word);
        if (braces || *word != '.') continue;
        if (length == 8 && !strncmp(word, ".version", 8)) {
            version_seen = sscanf(p, " %d.%d", &i->major, &i->minor) == 2;
        } else if (length == 7 && !strncmp(word, ".target", 7)) {
            char suffix = 0;
            if (sscanf(p, " sm_%d%c", &i->target.number, &suffix) < 1) goto done;
            i->target.suffix = suffix == 'a' || suffix == 'f' ? suffix : 0;
        } else if (length == 6 && !strncmp(word, ".entry", 6)) {
            while (isspace((unsigned char)*p)) p++;
            const char *name = p;
            while (word_character(*p)) p++;
            if (p == name) goto done;
            kernel *k = add_kernel(i, name, (size_t)(p - name));
            while (isspace((unsigned char)*p)) p++;
            if (*p != '(') continue;
            size_t offset = 0;
            for (p++; *p && *p != ')';) {
                size_t name_length, bytes, alignment = 1;
                p = declaration(p, ",)", &name, &name_length, &bytes, &alignment);
                if (*p == ',') p++;
                if (!name) continue;
                if (alignment) offset = (offset + alignment - 1) / alignment * alignment;
                set_parameter(k, k->parameter_count, offset, bytes);
                offset += bytes;
            }
        } else if ((length == 7 && !strncmp(word, ".global", 7)) ||
                   (length == 6 && !strncmp(word, ".const", 6))) {
            const char *name;
            size_t name_length, bytes, alignment = 1;
            p = declaration(p, "=;", &name, &name_length, &bytes, &alignment);
            p += strcspn(p, ";");
            if (name && bytes < (size_t)1 << 30) add_global(i, name, name_length, bytes);
        }
    }
    if (!version_seen || !i->target.number || braces) goto done;
    result = i->major * 10 + i->minor > ptx_limit(driver_version()) ? UNSUPPORTED_PTX_VERSION : OK;
done:
    free(text);
    return result;
}

static context *current(void) { return depth ? stack[depth - 1] : NULL; }

static CUresult usable_context(context **out) {
    context *c = current();
    if (!c) return INVALID_CONTEXT;
    if (!alive(c, CONTEXT)) return CONTEXT_IS_DESTROYED;
    *out = c;
    return OK;
}

// Reads an image and decides whether it runs: on the device of the current context, or without one on any
// device.
static CUresult load(const char *call, image **out, const void *code) {
    if (!out || !code) return logged(INVALID_VALUE, call, "");
    int delay = environment_number("FAKE_CUDA_LOAD_DELAY", 0);
    if (delay > 0) nanosleep(&(struct timespec){delay / 1000, delay % 1000 * 1000000L}, NULL);
    image *i = allocate(sizeof *i);
    i->head.kind = IMAGE;
    context *ctx = NULL;
    CUresult result = current() ? usable_context(&ctx) : OK;
    char magic[4] = {0}, name[24], hash[24], version[32];
    if (!result) {
        bool elf = peek(magic, code, 4) == 4 && !memcmp(magic, ELFMAG, 4);
        result = elf ? read_elf(i, code) : read_ptx(i, code);
    }
    arch_text(i->target, i->ptx, name);
    if (!result) result = asked_refusal(name);
    if (!result && !environment_number("FAKE_CUDA_LAZY", 0)) {
        result = NO_BINARY_FOR_GPU;
        for (int n = 0; n < device_count && result; n++)
            if (!ctx || ctx->device == n) result = runs_on(i, capabilities[n]);
    }
    if (result) i->head.dead = true;
    else *out = i;
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)i->hash);
    snprintf(version, sizeof version, "%d.%d", i->major, i->minor);
    return logged(result, call, "device:d kind:s arch:s version:s bytes:z fnv1a64:s", ctx ? ctx->device : -1,
                  !i->target.number ? "invalid"
                  : i->ptx          ? "ptx"
                                    : "cubin",
                  name, version, i->bytes, hash);
}

static CUresult load_file(const char *call, image **out, const char *path) {
    if (!out || !path) return INVALID_VALUE;
    FILE *file = fopen(path, "rb");
    if (!file) return logged(FILE_NOT_FOUND, call, "file:s", path);
    char *data = NULL;
    size_t size = 0, n;
    do {
        data = grow(data, size + 65537);
        size += n = fread(data + size, 1, 65536, file);
    } while (n);
    fclose(file);
    data[size] = 0;
    CUresult result = load(call, out, data);
    free(data);
    return result;
}

static CUresult entered(void) {
    int pid = owner_pid;
    return pid && pid == (int)getpid() ? OK : NOT_INITIALIZED;
}

#define ENTER()                        \
    do {                               \
        CUresult entered_ = entered(); \
        if (entered_) return entered_; \
    } while (0)

#define CHECK_DEVICE(d) \
    if ((d) < 0 || (d) >= device_count) return INVALID_DEVICE

#define CHECK_POINTER(p) \
    if (!(p)) return INVALID_VALUE

// ----------------------------------------------------------------------------------------------------
// Initialisation, errors, devices

API CUresult cuInit(unsigned flags) {
    int pid = owner_pid;
    if (pid) return pid == (int)getpid() ? OK : NOT_INITIALIZED;
    if (flags) return INVALID_VALUE;
    pthread_mutex_lock(&lock);
    CUresult result = environment_number("FAKE_CUDA_INIT_ERROR", 0);
    if (!result && !owner_pid) {
        if (!read_devices()) {
            fputs("fake CUDA driver: FAKE_CUDA_DEVICES is no list like \"9.0,8.6\"\n", stderr);
            result = UNKNOWN;
        } else if (!device_count) {
            result = NO_DEVICE;
        } else {
            for (int n = 0; n < device_count; n++) {
                primaries[n] = allocate(sizeof *primaries[n]);
                *primaries[n] =
                    (context){.head = {CONTEXT, true}, .device = n, .primary = true, .id = next_id++};
                pools[n] = allocate(sizeof *pools[n]);
                *pools[n] = (pool){.head = {POOL, false}, .device = n};
            }
            owner_pid = (int)getpid();
        }
    }
    pthread_mutex_unlock(&lock);
    return logged(result, "init", "devices:d driver:d", device_count, driver_version());
}

API CUresult cuDriverGetVersion(int *version) {
    CHECK_POINTER(version);
    *version = driver_version();
    return OK;
}

static CUresult error_text(CUresult code, const char **out, bool name) {
    CHECK_POINTER(out);
    for (size_t n = 0; n < sizeof errors / sizeof *errors; n++) {
        if (errors[n].code == code) {
            *out = name ? errors[n].name : errors[n].text;
            return OK;
        }
    }
    *out = NULL;
    return INVALID_VALUE;
}

API CUresult cuGetErrorName(CUresult code, const char **out) { return error_text(code, out, true); }
API CUresult cuGetErrorString(CUresult code, const char **out) { return error_text(code, out, false); }

API CUresult cuDeviceGetCount(int *count) {
    ENTER();
    CHECK_POINTER(count);
    *count = device_count;
    return OK;
}

API CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    ENTER();
    CHECK_POINTER(device);
    CHECK_DEVICE(ordinal);
    *device = ordinal;
    return OK;
}

API CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    if (!name || length < 1) return INVALID_VALUE;
    snprintf(name, (size_t)length, "Fake GPU %d.%d", capabilities[device] / 10, capabilities[device] % 10);
    return OK;
}

API CUresult cuDeviceGetUuid_v2(unsigned char *uuid, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    CHECK_POINTER(uuid);
    memset(uuid, 0xfa, 16);
    uuid[14] = (unsigned char)capabilities[device];
    uuid[15] = (unsigned char)device;
    return OK;
}

API CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    CHECK_POINTER(bytes);
    *bytes = (size_t)8 << 30;
    return OK;
}

API CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    if (!value || attribute < 1 || attribute > 512) return INVALID_VALUE;
    switch (attribute) {
        case 1: case 2: case 3: *value = 1024; break;         // threads a block; block x, y
        case 4: *value = 64; break;                           // block z
        case 5: *value = 2147483647; break;                   // grid x
        case 6: case 7: *value = 65535; break;                // grid y, z
        case 8: *value = 49152; break;                        // shared memory a block
        case 9: *value = 65536; break;                        // constant memory
        case 10: *value = 32; break;                          // warp
        case 12: case 82: *value = 65536; break;              // registers a block, a multiprocessor
        case 13: case 36: *value = 1000000; break;            // clocks
        case 16: *value = 4; break;                           // multiprocessors
        case 18: *value = is_tegra(capabilities[device]); break;
        case 19: case 31: case 41: case 78: case 83: *value = 1; break;
        case 33: *value = device + 1; break;                  // PCI bus
        case 39: *value = 2048; break;                        // threads a multiprocessor
        case 75: *value = capabilities[device] / 10; break;
        case 76: *value = capabilities[device] % 10; break;
        case 81: case 97: *value = 101376; break;             // shared memory a multiprocessor, opted in
        case 95: case 115: *value = 1; break;                 // cooperative launch, memory pools
        case 106: *value = 16; break;                         // blocks a multiprocessor
        default: *value = 0;
    }
    return OK;
}

API CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    if (!major || !minor) return INVALID_VALUE;
    *major = capabilities[device] / 10;
    *minor = capabilities[device] % 10;
    return OK;
}

API CUresult cuDeviceGetPCIBusId(char *text, int length, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    if (!text || length < 13) return INVALID_VALUE;
    snprintf(text, (size_t)length, "0000:%02x:00.0", (unsigned)device + 1);
    return OK;
}

API CUresult cuDeviceGetByPCIBusId(CUdevice *device, const char *text) {
    ENTER();
    if (!device || !text) return INVALID_VALUE;
    unsigned domain, bus;
    if (sscanf(text, "%x:%x:", &domain, &bus) != 2 || domain || bus < 1 || bus > (unsigned)device_count)
        return INVALID_DEVICE;
    *device = (int)bus - 1;
    return OK;
}

API CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    ENTER();
    CHECK_DEVICE(device);
    CHECK_DEVICE(peer);
    CHECK_POINTER(can);
    *can = 0;
    return OK;
}

// ----------------------------------------------------------------------------------------------------
// Contexts

API CUresult cuDevicePrimaryCtxRetain(context **out, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    CHECK_POINTER(out);
    pthread_mutex_lock(&lock);
    context *c = primaries[device];
    c->retained++;
    c->head.dead = false;
    pthread_mutex_unlock(&lock);
    *out = c;
    return OK;
}

API CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    pthread_mutex_lock(&lock);
    context *c = primaries[device];
    CUresult result = c->retained ? OK : INVALID_CONTEXT;
    if (!result && !--c->retained) c->head.dead = true;
    pthread_mutex_unlock(&lock);
    return result;
}

API CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    pthread_mutex_lock(&lock);
    primaries[device]->retained = 0;
    primaries[device]->head.dead = true;
    pthread_mutex_unlock(&lock);
    return OK;
}

API CUresult cuDevicePrimaryCtxSetFlags_v2(CUdevice device, unsigned flags) {
    ENTER();
    CHECK_DEVICE(device);
    primaries[device]->flags = flags;
    return OK;
}

API CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    ENTER();
    CHECK_DEVICE(device);
    if (flags) *flags = primaries[device]->flags;
    if (active) *active = !primaries[device]->head.dead;
    return OK;
}

static CUresult push(context *c) {
    if (depth == MAX_STACK) return OUT_OF_MEMORY;
    stack[depth++] = c;
    return OK;
}

API CUresult cuCtxCreate_v2(context **out, unsigned flags, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    CHECK_POINTER(out);
    context *c = allocate(sizeof *c);
    *c = (context){.head = {CONTEXT, false}, .device = device, .flags = flags, .id = next_id++};
    *out = c;
    return push(c);
}

API CUresult cuCtxCreate_v3(context **out, void *affinity, int count, unsigned flags, CUdevice device) {
    return affinity || count ? NOT_SUPPORTED : cuCtxCreate_v2(out, flags, device);
}

API CUresult cuCtxCreate_v4(context **out, void *parameters, unsigned flags, CUdevice device) {
    return parameters ? NOT_SUPPORTED : cuCtxCreate_v2(out, flags, device);
}

API CUresult cuCtxDestroy_v2(context *c) {
    ENTER();
    if (!alive(c, CONTEXT) || c->primary) return INVALID_CONTEXT;
    c->head.dead = true;
    if (current() == c) depth--;
    return OK;
}

API CUresult cuCtxPushCurrent_v2(context *c) {
    ENTER();
    return alive(c, CONTEXT) ? push(c) : INVALID_CONTEXT;
}

API CUresult cuCtxPopCurrent_v2(context **out) {
    ENTER();
    if (!depth) return INVALID_CONTEXT;
    if (out) *out = current();
    depth--;
    return OK;
}

API CUresult cuCtxSetCurrent(context *c) {
    ENTER();
    if (c && !alive(c, CONTEXT)) return INVALID_CONTEXT;
    if (depth) depth--;
    return c ? push(c) : OK;
}

API CUresult cuCtxGetCurrent(context **out) {
    ENTER();
    CHECK_POINTER(out);
    *out = current();
    return OK;
}

API CUresult cuCtxGetDevice(CUdevice *device) {
    ENTER();
    CHECK_POINTER(device);
    context *c;
    CUresult result = usable_context(&c);
    if (!result) *device = c->device;
    return result;
}

static CUresult given_context(context *c, context **out) {
    if (!c) return usable_context(out);
    *out = alive(c, CONTEXT);
    return *out ? OK : INVALID_CONTEXT;
}

API CUresult cuCtxGetDevice_v2(CUdevice *device, context *c) {
    ENTER();
    CHECK_POINTER(device);
    CUresult result = given_context(c, &c);
    if (!result) *device = c->device;
    return result;
}

API CUresult cuCtxGetFlags(unsigned *flags) {
    ENTER();
    CHECK_POINTER(flags);
    context *c;
    CUresult result = usable_context(&c);
    if (!result) *flags = c->flags;
    return result;
}

API CUresult cuCtxGetId(context *c, unsigned long long *id) {
    ENTER();
    CHECK_POINTER(id);
    CUresult result = given_context(c, &c);
    if (!result) *id = c->id;
    return result;
}

API CUresult cuCtxGetApiVersion(context *c, unsigned *version) {
    ENTER();
    CHECK_POINTER(version);
    CUresult result = given_context(c, &c);
    if (!result) *version = 3020;
    return result;
}

API CUresult cuCtxSynchronize(void) {
    ENTER();
    context *c;
    return usable_context(&c);
}

API CUresult cuCtxSynchronize_v2(context *c) {
    ENTER();
    return given_context(c, &c);
}

API CUresult cuCtxGetStreamPriorityRange(int *least, int *greatest) {
    ENTER();
    context *c;
    if (least) *least = 0;
    if (greatest) *greatest = -5;
    return usable_context(&c);
}

API CUresult cuCtxGetLimit(size_t *value, int limit) {
    ENTER();
    CHECK_POINTER(value);
    (void)limit;
    context *c;
    *value = 1024;
    return usable_context(&c);
}

API CUresult cuCtxSetLimit(int limit, size_t value) {
    ENTER();
    (void)limit, (void)value;
    context *c;
    return usable_context(&c);
}

// ----------------------------------------------------------------------------------------------------
// Libraries, modules and their kernels. A library and a module are one kind of object, a kernel and a
// function too.

API CUresult cuLibraryLoadData(image **out, const void *code, int *jit, void **jit_values, unsigned jit_count,
                               int *options, void **option_values, unsigned option_count) {
    ENTER();
    (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)option_values, (void)option_count;
    return load("library_load", out, code);
}

API CUresult cuLibraryLoadFromFile(image **out, const char *path, int *jit, void **jit_values,
                                   unsigned jit_count, int *options, void **option_values,
                                   unsigned option_count) {
    ENTER();
    (void)jit, (void)jit_values, (void)jit_count, (void)options, (void)option_values, (void)option_count;
    return load_file("library_load", out, path);
}

API CUresult cuModuleLoadDataEx(image **out, const void *code, unsigned count, int *options, void **values) {
    ENTER();
    (void)count, (void)options, (void)values;
    context *c;
    CUresult result = usable_context(&c);
    return result ? result : load("module_load", out, code);
}

API CUresult cuModuleLoadData(image **out, const void *code) {
    return cuModuleLoadDataEx(out, code, 0, NULL, NULL);
}

API CUresult cuModuleLoad(image **out, const char *path) {
    ENTER();
    context *c;
    CUresult result = usable_context(&c);
    return result ? result : load_file("module_load", out, path);
}

static CUresult unload(const char *call, image *i) {
    ENTER();
    if (!alive(i, IMAGE)) return INVALID_HANDLE;
    char hash[24];
    snprintf(hash, sizeof hash, "%016llx", (unsigned long long)i->hash);
    for (size_t n = 0; n < i->kernel_count; n++) i->kernels[n]->head.dead = true;
    i->head.dead = true;
    return logged(OK, call, "fnv1a64:s", hash);
}

API CUresult cuLibraryUnload(image *i) { return unload("library_unload", i); }
API CUresult cuModuleUnload(image *i) { return unload("module_unload", i); }

API CUresult cuModuleGetLoadingMode(int *mode) {
    ENTER();
    CHECK_POINTER(mode);
    *mode = environment_number("FAKE_CUDA_LAZY", 0) ? 2 : 1;
    return OK;
}

static CUresult get_kernel(const char *call, kernel **out, image *i, const char *name) {
    ENTER();
    if (!out || !name) return INVALID_VALUE;
    if (!alive(i, IMAGE)) return INVALID_HANDLE;
    kernel *k = find_kernel(i, name);
    if (k) *out = k;
    return logged(k ? OK : NOT_FOUND, call, "name:s", name);
}

API CUresult cuLibraryGetKernel(kernel **out, image *i, const char *name) {
    return get_kernel("kernel_get", out, i, name);
}
API CUresult cuModuleGetFunction(kernel **out, image *i, const char *name) {
    return get_kernel("function_get", out, i, name);
}

API CUresult cuLibraryGetKernelCount(unsigned *count, image *i) {
    ENTER();
    CHECK_POINTER(count);
    if (!alive(i, IMAGE)) return INVALID_HANDLE;
    *count = (unsigned)i->kernel_count;
    return OK;
}

API CUresult cuModuleGetFunctionCount(unsigned *count, image *i) { return cuLibraryGetKernelCount(count, i); }

API CUresult cuLibraryEnumerateKernels(kernel **out, unsigned count, image *i) {
    ENTER();
    CHECK_POINTER(out);
    if (!alive(i, IMAGE)) return INVALID_HANDLE;
    for (unsigned n = 0; n < count && n < i->kernel_count; n++) out[n] = i->kernels[n];
    return OK;
}

API CUresult cuModuleEnumerateFunctions(kernel **out, unsigned count, image *i) {
    return cuLibraryEnumerateKernels(out, count, i);
}

// What a lazily loading driver finds out late.
static CUresult check_target(const kernel *k, int device) { return runs_on(k->owner, capabilities[device]); }

API CUresult cuLibraryGetModule(image **out, image *i) {
    ENTER();
    CHECK_POINTER(out);
    if (!alive(i, IMAGE)) return INVALID_HANDLE;
    context *c;
    CUresult result = usable_context(&c);
    if (!result) result = runs_on(i, capabilities[c->device]);
    if (!result) *out = i;
    return result;
}

API CUresult cuKernelGetFunction(kernel **out, kernel *k) {
    ENTER();
    CHECK_POINTER(out);
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    context *c;
    CUresult result = usable_context(&c);
    if (!result) result = check_target(k, c->device);
    if (!result) *out = k;
    return result;
}

static CUresult get_global(CUdeviceptr *pointer, size_t *bytes, image *i, const char *name) {
    ENTER();
    CHECK_POINTER(name);
    if (!alive(i, IMAGE)) return INVALID_HANDLE;
    context *c;
    CUresult result = usable_context(&c);
    if (result) return result;
    for (size_t n = 0; n < i->global_count; n++) {
        if (strcmp(i->globals[n].name, name)) continue;
        if (pointer) *pointer = (CUdeviceptr)i->globals[n].memory;
        if (bytes) *bytes = i->globals[n].size;
        return OK;
    }
    return NOT_FOUND;
}

API CUresult cuLibraryGetGlobal(CUdeviceptr *p, size_t *n, image *i, const char *name) {
    return get_global(p, n, i, name);
}
API CUresult cuModuleGetGlobal_v2(CUdeviceptr *p, size_t *n, image *i, const char *name) {
    return get_global(p, n, i, name);
}

API CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, image *i, const char *name) {
    ENTER();
    (void)pointer, (void)bytes, (void)name;
    return alive(i, IMAGE) ? NOT_FOUND : INVALID_HANDLE;
}

API CUresult cuLibraryGetUnifiedFunction(void **out, image *i, const char *name) {
    ENTER();
    (void)out, (void)name;
    return alive(i, IMAGE) ? NOT_FOUND : INVALID_HANDLE;
}

API CUresult cuKernelGetLibrary(image **out, kernel *k) {
    ENTER();
    CHECK_POINTER(out);
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    *out = k->owner;
    return OK;
}

API CUresult cuFuncGetModule(image **out, kernel *k) { return cuKernelGetLibrary(out, k); }

API CUresult cuKernelGetName(const char **out, kernel *k) {
    ENTER();
    CHECK_POINTER(out);
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    *out = k->name;
    return OK;
}

API CUresult cuFuncGetName(const char **out, kernel *k) { return cuKernelGetName(out, k); }

API CUresult cuKernelGetParamInfo(kernel *k, size_t index, size_t *offset, size_t *size) {
    ENTER();
    CHECK_POINTER(offset);
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    if (index >= k->parameter_count) return INVALID_VALUE;
    *offset = k->parameters[index].offset;
    if (size) *size = k->parameters[index].size;
    return OK;
}

API CUresult cuFuncGetParamInfo(kernel *k, size_t index, size_t *offset, size_t *size) {
    return cuKernelGetParamInfo(k, index, offset, size);
}

API CUresult cuKernelGetParamCount(kernel *k, size_t *count) {
    ENTER();
    CHECK_POINTER(count);
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    *count = k->parameter_count;
    return OK;
}

API CUresult cuFuncGetParamCount(kernel *k, size_t *count) { return cuKernelGetParamCount(k, count); }

static CUresult attribute_of(int *value, int attribute, kernel *k) {
    if (!value || attribute < 0 || attribute >= 32) return INVALID_VALUE;
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    if (k->attribute_set[attribute]) {
        *value = k->attributes[attribute];
        return OK;
    }
    switch (attribute) {
        case 0: *value = 1024; break;  // threads a block
        case 4: *value = 32; break;    // registers
        case 5:
        case 6: *value = k->owner->target.number; break;
        case 8: *value = 49152; break;  // dynamic shared memory
        case 9: *value = -1; break;     // carve-out
        default: *value = 0;
    }
    return OK;
}

API CUresult cuKernelGetAttribute(int *value, int attribute, kernel *k, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    CUresult result = attribute_of(value, attribute, k);
    return result ? result : check_target(k, device);
}

API CUresult cuFuncGetAttribute(int *value, int attribute, kernel *k) {
    ENTER();
    return attribute_of(value, attribute, k);
}

API CUresult cuFuncSetAttribute(kernel *k, int attribute, int value) {
    ENTER();
    if (attribute < 8 || attribute >= 32) return INVALID_VALUE;
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    k->attributes[attribute] = value;
    k->attribute_set[attribute] = true;
    pthread_mutex_unlock(&lock);
    return OK;
}

API CUresult cuKernelSetAttribute(int attribute, int value, kernel *k, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    return cuFuncSetAttribute(k, attribute, value);
}

API CUresult cuKernelSetCacheConfig(kernel *k, int config, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    (void)config;
    return alive(k, KERNEL) ? OK : INVALID_HANDLE;
}

API CUresult cuFuncSetCacheConfig(kernel *k, int config) {
    ENTER();
    (void)config;
    return alive(k, KERNEL) ? OK : INVALID_HANDLE;
}

API CUresult cuFuncIsLoaded(int *state, kernel *k) {
    ENTER();
    CHECK_POINTER(state);
    *state = 1;
    return alive(k, KERNEL) ? OK : INVALID_HANDLE;
}

API CUresult cuFuncLoad(kernel *k) {
    ENTER();
    return alive(k, KERNEL) ? OK : INVALID_HANDLE;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, kernel *k, int threads, size_t shared) {
    ENTER();
    (void)shared;
    if (!blocks || threads < 1) return INVALID_VALUE;
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    *blocks = threads > 1024 ? 0 : 2048 / threads > 16 ? 16 : 2048 / threads;
    return OK;
}

API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, kernel *k, int threads,
                                                                  size_t shared, unsigned flags) {
    (void)flags;
    return cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, k, threads, shared);
}

API CUresult cuOccupancyMaxPotentialBlockSize(int *grid, int *block, kernel *k, void *dynamic, size_t shared,
                                              int limit) {
    ENTER();
    (void)dynamic, (void)shared;
    if (!grid || !block) return INVALID_VALUE;
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    *block = limit > 0 && limit < 1024 ? limit : 1024;
    *grid = 8;
    return OK;
}

API CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, kernel *k, int blocks, int threads) {
    ENTER();
    (void)blocks, (void)threads;
    CHECK_POINTER(bytes);
    *bytes = 49152;
    return alive(k, KERNEL) ? OK : INVALID_HANDLE;
}

// ----------------------------------------------------------------------------------------------------
// Streams, events, launches. Everything is finished at once.

static bool special_stream(const stream *s) { return (uintptr_t)s <= 2; }

static CUresult stream_context(stream *s, context **out) {
    if (special_stream(s)) return usable_context(out);
    if (!alive(s, STREAM)) return INVALID_HANDLE;
    *out = s->ctx;
    return alive(s->ctx, CONTEXT) ? OK : CONTEXT_IS_DESTROYED;
}

API CUresult cuStreamCreateWithPriority(stream **out, unsigned flags, int priority) {
    ENTER();
    if (!out || flags > 1) return INVALID_VALUE;
    context *c;
    CUresult result = usable_context(&c);
    if (result) return result;
    *out = allocate(sizeof **out);
    priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
    **out =
        (stream){.head = {STREAM, false}, .ctx = c, .flags = flags, .priority = priority, .id = next_id++};
    return logged(OK, "stream_create", "device:d", c->device);
}

API CUresult cuStreamCreate(stream **out, unsigned flags) {
    return cuStreamCreateWithPriority(out, flags, 0);
}

API CUresult cuStreamDestroy_v2(stream *s) {
    ENTER();
    if (special_stream(s) || !alive(s, STREAM)) return INVALID_HANDLE;
    s->head.dead = true;
    return OK;
}

API CUresult cuStreamSynchronize(stream *s) {
    ENTER();
    context *c;
    return stream_context(s, &c);
}

API CUresult cuStreamQuery(stream *s) { return cuStreamSynchronize(s); }

API CUresult cuStreamGetFlags(stream *s, unsigned *flags) {
    ENTER();
    CHECK_POINTER(flags);
    context *c;
    CUresult result = stream_context(s, &c);
    if (!result) *flags = special_stream(s) ? 0 : s->flags;
    return result;
}

API CUresult cuStreamGetPriority(stream *s, int *priority) {
    ENTER();
    CHECK_POINTER(priority);
    context *c;
    CUresult result = stream_context(s, &c);
    if (!result) *priority = special_stream(s) ? 0 : s->priority;
    return result;
}

API CUresult cuStreamGetId(stream *s, unsigned long long *id) {
    ENTER();
    CHECK_POINTER(id);
    context *c;
    CUresult result = stream_context(s, &c);
    if (!result) *id = special_stream(s) ? (unsigned long long)(uintptr_t)s : s->id;
    return result;
}

API CUresult cuStreamGetCtx(stream *s, context **out) {
    ENTER();
    CHECK_POINTER(out);
    return stream_context(s, out);
}

API CUresult cuStreamGetCtx_v2(stream *s, context **out, void **green) {
    if (green) *green = NULL;
    return cuStreamGetCtx(s, out);
}

API CUresult cuStreamGetDevice(stream *s, CUdevice *device) {
    ENTER();
    CHECK_POINTER(device);
    context *c;
    CUresult result = stream_context(s, &c);
    if (!result) *device = c->device;
    return result;
}

API CUresult cuStreamGetGreenCtx(stream *s, void **green) {
    ENTER();
    CHECK_POINTER(green);
    context *c;
    *green = NULL;
    return stream_context(s, &c);
}

API CUresult cuStreamIsCapturing(stream *s, int *status) {
    ENTER();
    CHECK_POINTER(status);
    context *c;
    *status = 0;
    return stream_context(s, &c);
}

API CUresult cuStreamGetCaptureInfo_v2(stream *s, int *status, uint64_t *id, void **graph,
                                       const void **dependencies, size_t *count) {
    ENTER();
    CHECK_POINTER(status);
    context *c;
    *status = 0;
    if (id) *id = 0;
    if (graph) *graph = NULL;
    if (dependencies) *dependencies = NULL;
    if (count) *count = 0;
    return stream_context(s, &c);
}

API CUresult cuStreamGetCaptureInfo_v3(stream *s, int *status, uint64_t *id, void **graph,
                                       const void **dependencies, const void **edges, size_t *count) {
    if (edges) *edges = NULL;
    return cuStreamGetCaptureInfo_v2(s, status, id, graph, dependencies, count);
}

API CUresult cuStreamWaitEvent(stream *s, event *e, unsigned flags) {
    ENTER();
    (void)flags;
    context *c;
    return alive(e, EVENT) ? stream_context(s, &c) : INVALID_HANDLE;
}

API CUresult cuEventCreate(event **out, unsigned flags) {
    ENTER();
    (void)flags;
    CHECK_POINTER(out);
    context *c;
    CUresult result = usable_context(&c);
    if (result) return result;
    *out = allocate(sizeof **out);
    (*out)->head.kind = EVENT;
    (*out)->ctx = c;
    return OK;
}

API CUresult cuEventRecord(event *e, stream *s) {
    ENTER();
    if (!alive(e, EVENT)) return INVALID_HANDLE;
    context *c;
    CUresult result = stream_context(s, &c);
    if (!result) clock_gettime(CLOCK_MONOTONIC, &e->recorded);
    return result;
}

API CUresult cuEventRecordWithFlags(event *e, stream *s, unsigned flags) {
    (void)flags;
    return cuEventRecord(e, s);
}

API CUresult cuEventQuery(event *e) {
    ENTER();
    return alive(e, EVENT) ? OK : INVALID_HANDLE;
}

API CUresult cuEventSynchronize(event *e) { return cuEventQuery(e); }

API CUresult cuEventDestroy_v2(event *e) {
    ENTER();
    if (!alive(e, EVENT)) return INVALID_HANDLE;
    e->head.dead = true;
    return OK;
}

API CUresult cuEventElapsedTime_v2(float *milliseconds, event *start, event *end) {
    ENTER();
    CHECK_POINTER(milliseconds);
    if (!alive(start, EVENT) || !alive(end, EVENT) || !start->recorded.tv_sec || !end->recorded.tv_sec)
        return INVALID_HANDLE;
    *milliseconds = (float)((double)(end->recorded.tv_sec - start->recorded.tv_sec) * 1e3 +
                            (double)(end->recorded.tv_nsec - start->recorded.tv_nsec) / 1e6);
    return OK;
}

static CUresult launch(kernel *k, const unsigned grid[3], const unsigned block[3], unsigned shared,
                       stream *s) {
    ENTER();
    if (!alive(k, KERNEL)) return INVALID_HANDLE;
    context *c;
    CUresult result = stream_context(s, &c);
    if (result) return result;
    for (int n = 0; n < 3; n++)
        if (!grid[n] || !block[n]) result = INVALID_VALUE;
    if ((uint64_t)block[0] * block[1] * block[2] > 1024) result = INVALID_VALUE;
    if (!result) result = check_target(k, c->device);
    char grid_text[48], block_text[48], name[24];
    snprintf(grid_text, sizeof grid_text, "%u,%u,%u", grid[0], grid[1], grid[2]);
    snprintf(block_text, sizeof block_text, "%u,%u,%u", block[0], block[1], block[2]);
    arch_text(k->owner->target, k->owner->ptx, name);
    return logged(result, "launch", "name:s device:d arch:s grid:s block:s shared:z", k->name, c->device,
                  name, grid_text, block_text, (size_t)shared);
}

API CUresult cuLaunchKernel(kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, stream *s, void **parameters, void **extra) {
    (void)parameters, (void)extra;
    return launch(k, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, shared, s);
}

API CUresult cuLaunchCooperativeKernel(kernel *k, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                                       unsigned by, unsigned bz, unsigned shared, stream *s,
                                       void **parameters) {
    return cuLaunchKernel(k, gx, gy, gz, bx, by, bz, shared, s, parameters, NULL);
}

typedef struct launch_config {
    unsigned grid[3], block[3], shared;
    stream *s;
    void *attributes;
    unsigned attribute_count;
} launch_config;

API CUresult cuLaunchKernelEx(const launch_config *config, kernel *k, void **parameters, void **extra) {
    (void)parameters, (void)extra;
    CHECK_POINTER(config);
    return launch(k, config->grid, config->block, config->shared, config->s);
}

API CUresult cuLaunchHostFunc(stream *s, void (*function)(void *), void *data) {
    ENTER();
    CHECK_POINTER(function);
    context *c;
    CUresult result = stream_context(s, &c);
    if (!result) function(data);
    return result;
}

// ----------------------------------------------------------------------------------------------------
// Memory: host memory under another name

static void **blocks;
static size_t block_count;

API CUresult cuMemAlloc_v2(CUdeviceptr *out, size_t bytes) {
    ENTER();
    if (!out || !bytes) return INVALID_VALUE;
    context *c;
    CUresult result = usable_context(&c);
    if (result) return result;
    void *p = calloc(1, bytes);
    if (!p) return OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    blocks = grow(blocks, (block_count + 1) * sizeof *blocks);
    blocks[block_count++] = p;
    pthread_mutex_unlock(&lock);
    *out = (CUdeviceptr)p;
    return OK;
}

API CUresult cuMemFree_v2(CUdeviceptr pointer) {
    ENTER();
    if (!pointer) return OK;
    CUresult result = INVALID_VALUE;
    pthread_mutex_lock(&lock);
    for (size_t n = 0; n < block_count && result; n++) {
        if (blocks[n] != (void *)pointer) continue;
        free(blocks[n]);
        blocks[n] = blocks[--block_count];
        result = OK;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

API CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags) {
    (void)flags;
    return cuMemAlloc_v2(out, bytes);
}

API CUresult cuMemAllocHost_v2(void **out, size_t bytes) { return cuMemAlloc_v2((CUdeviceptr *)out, bytes); }
API CUresult cuMemFreeHost(void *p) { return cuMemFree_v2((CUdeviceptr)p); }

API CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
    (void)flags;
    return cuMemAlloc_v2((CUdeviceptr *)out, bytes);
}

API CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, stream *s) {
    ENTER();
    context *c;
    CUresult result = stream_context(s, &c);
    if (result) return result;
    if ((result = push(c))) return result;
    result = cuMemAlloc_v2(out, bytes);
    depth--;
    return result;
}

API CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes, pool *p, stream *s) {
    ENTER();
    return alive(p, POOL) ? cuMemAllocAsync(out, bytes, s) : INVALID_HANDLE;
}

API CUresult cuMemFreeAsync(CUdeviceptr pointer, stream *s) {
    ENTER();
    context *c;
    CUresult result = stream_context(s, &c);
    return result ? result : cuMemFree_v2(pointer);
}

API CUresult cuMemGetInfo_v2(size_t *unused, size_t *total) {
    ENTER();
    context *c;
    if (unused) *unused = (size_t)7 << 30;
    if (total) *total = (size_t)8 << 30;
    return usable_context(&c);
}

static CUresult copy(CUdeviceptr to, CUdeviceptr from, size_t bytes, stream *s) {
    ENTER();
    context *c;
    CUresult result = stream_context(s, &c);
    if (result) return result;
    if (bytes && (!to || !from)) return INVALID_VALUE;
    if (bytes) memmove((void *)to, (const void *)from, bytes);
    return OK;
}

API CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, size_t n) { return copy(to, from, n, NULL); }
API CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void *from, size_t n) {
    return copy(to, (CUdeviceptr)from, n, NULL);
}
API CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t n) {
    return copy((CUdeviceptr)to, from, n, NULL);
}
API CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, size_t n) { return copy(to, from, n, NULL); }
API CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t n, stream *s) {
    return copy(to, from, n, s);
}
API CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, stream *s) {
    return copy(to, (CUdeviceptr)from, n, s);
}
API CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, stream *s) {
    return copy((CUdeviceptr)to, from, n, s);
}
API CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t n, stream *s) {
    return copy(to, from, n, s);
}

static CUresult fill(CUdeviceptr to, const void *pattern, size_t width, size_t count, stream *s) {
    ENTER();
    context *c;
    CUresult result = stream_context(s, &c);
    if (result) return result;
    if (count && !to) return INVALID_VALUE;
    for (size_t n = 0; n < count; n++) memcpy((char *)to + n * width, pattern, width);
    return OK;
}

API CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char v, size_t n) {
    return fill(to, &v, sizeof v, n, NULL);
}
API CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short v, size_t n) {
    return fill(to, &v, sizeof v, n, NULL);
}
API CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned v, size_t n) { return fill(to, &v, sizeof v, n, NULL); }
API CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char v, size_t n, stream *s) {
    return fill(to, &v, sizeof v, n, s);
}
API CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short v, size_t n, stream *s) {
    return fill(to, &v, sizeof v, n, s);
}
API CUresult cuMemsetD32Async(CUdeviceptr to, unsigned v, size_t n, stream *s) {
    return fill(to, &v, sizeof v, n, s);
}

API CUresult cuDeviceGetDefaultMemPool(pool **out, CUdevice device) {
    ENTER();
    CHECK_DEVICE(device);
    CHECK_POINTER(out);
    *out = pools[device];
    return OK;
}

API CUresult cuDeviceGetMemPool(pool **out, CUdevice device) {
    return cuDeviceGetDefaultMemPool(out, device);
}

API CUresult cuMemPoolSetAttribute(pool *p, int attribute, void *value) {
    ENTER();
    (void)attribute, (void)value;
    return alive(p, POOL) ? OK : INVALID_HANDLE;
}

API CUresult cuMemPoolGetAttribute(pool *p, int attribute, void *value) {
    ENTER();
    CHECK_POINTER(value);
    if (!alive(p, POOL)) return INVALID_HANDLE;
    if (attribute <= 3) memset(value, 0, 4);  // the first three are ints, the others 64 bits
    else memset(value, 0, 8);
    return OK;
}

API CUresult cuMemPoolTrimTo(pool *p, size_t bytes) {
    ENTER();
    (void)bytes;
    return alive(p, POOL) ? OK : INVALID_HANDLE;
}

// ----------------------------------------------------------------------------------------------------
// Functions that cuda.core wants to exist

#define STUB(name)            \
    API CUresult name(void) { \
        ENTER();              \
        return NOT_SUPPORTED; \
    }

#define STUBS(S) \
    S(cuArray3DCreate) S(cuArrayDestroy) S(cuCtxFromGreenCtx) S(cuCtxGetDevResource) \
    S(cuDevResourceGenerateDesc) S(cuDevSmResourceSplit) S(cuDevSmResourceSplitByCount) \
    S(cuDeviceGetDevResource) S(cuGetExportTable) S(cuGraphChildGraphNodeGetGraph) S(cuGraphCreate) \
    S(cuGraphDestroy) S(cuGraphExecDestroy) S(cuGraphExecUpdate) S(cuGraphInstantiateWithParams) \
    S(cuGraphNodeFindInClone) S(cuGraphReleaseUserObject) S(cuGraphRetainUserObject) \
    S(cuGraphicsGLRegisterBuffer) S(cuGraphicsUnmapResources) S(cuGraphicsUnregisterResource) \
    S(cuGreenCtxCreate) S(cuGreenCtxDestroy) S(cuGreenCtxStreamCreate) S(cuIpcGetEventHandle) \
    S(cuIpcOpenEventHandle) S(cuLinkAddData) S(cuLinkAddFile) S(cuLinkComplete) S(cuLinkCreate) \
    S(cuLinkDestroy) S(cuMemPoolCreate) S(cuMemPoolDestroy) S(cuMemPoolExportPointer) \
    S(cuMemPoolExportToShareableHandle) S(cuMemPoolGetAccess) S(cuMemPoolImportFromShareableHandle) \
    S(cuMemPoolImportPointer) S(cuMemPoolSetAccess) S(cuMemRetainAllocationHandle) S(cuMemcpyBatchAsync) \
    S(cuMemcpyWithAttributesAsync) S(cuMipmappedArrayCreate) S(cuMipmappedArrayDestroy) \
    S(cuMipmappedArrayGetLevel) S(cuModuleLoadFatBinary) S(cuOccupancyMaxActiveClusters) \
    S(cuOccupancyMaxPotentialClusterSize) S(cuPointerGetAttribute) S(cuPointerGetAttributes) \
    S(cuStreamBeginCapture) S(cuStreamEndCapture) S(cuSurfObjectCreate) S(cuSurfObjectDestroy) \
    S(cuTensorMapEncodeTiled) S(cuTexObjectCreate) S(cuTexObjectDestroy) S(cuUserObjectCreate) \
    S(cuUserObjectRelease)

STUBS(STUB)

// ----------------------------------------------------------------------------------------------------
// The table of functions. A name may occur more than once: the newest that the caller and the driver know
// counts.

API CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status);
API CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags);

typedef void (*any_function)(void);

#define F(name) {#name, 0, (any_function)name},
#define V(name, symbol, since) {#name, since, (any_function)symbol},

static const struct {
    const char *name;
    int since;
    any_function function;
} functions[] = {
    F(cuInit) F(cuDriverGetVersion) F(cuGetErrorName) F(cuGetErrorString) F(cuDeviceGetCount)
    F(cuDeviceGet) F(cuDeviceGetName) V(cuDeviceGetUuid, cuDeviceGetUuid_v2, 0)
    V(cuDeviceTotalMem, cuDeviceTotalMem_v2, 0) F(cuDeviceGetAttribute) F(cuDeviceComputeCapability)
    F(cuDeviceGetPCIBusId) F(cuDeviceGetByPCIBusId) F(cuDeviceCanAccessPeer) F(cuDevicePrimaryCtxRetain)
    V(cuDevicePrimaryCtxRelease, cuDevicePrimaryCtxRelease_v2, 0)
    V(cuDevicePrimaryCtxReset, cuDevicePrimaryCtxReset_v2, 0) F(cuDevicePrimaryCtxGetState)
    V(cuDevicePrimaryCtxSetFlags, cuDevicePrimaryCtxSetFlags_v2, 0) V(cuCtxCreate, cuCtxCreate_v2, 0)
    V(cuCtxCreate, cuCtxCreate_v3, 11040) V(cuCtxCreate, cuCtxCreate_v4, 12050)
    V(cuCtxDestroy, cuCtxDestroy_v2, 0) V(cuCtxPushCurrent, cuCtxPushCurrent_v2, 0)
    V(cuCtxPopCurrent, cuCtxPopCurrent_v2, 0) F(cuCtxSetCurrent) F(cuCtxGetCurrent) F(cuCtxGetDevice)
    V(cuCtxGetDevice, cuCtxGetDevice_v2, 13000) F(cuCtxGetFlags) V(cuCtxGetId, cuCtxGetId, 12000)
    F(cuCtxGetApiVersion) F(cuCtxSynchronize) V(cuCtxSynchronize, cuCtxSynchronize_v2, 13000)
    F(cuCtxGetStreamPriorityRange) F(cuCtxGetLimit) F(cuCtxSetLimit)
    V(cuLibraryLoadData, cuLibraryLoadData, 12000)
    V(cuLibraryLoadFromFile, cuLibraryLoadFromFile, 12000) V(cuLibraryUnload, cuLibraryUnload, 12000)
    V(cuLibraryGetKernel, cuLibraryGetKernel, 12000)
    V(cuLibraryGetKernelCount, cuLibraryGetKernelCount, 12040)
    V(cuLibraryEnumerateKernels, cuLibraryEnumerateKernels, 12040)
    V(cuLibraryGetModule, cuLibraryGetModule, 12000) V(cuLibraryGetGlobal, cuLibraryGetGlobal, 12000)
    V(cuLibraryGetManaged, cuLibraryGetManaged, 12000)
    V(cuLibraryGetUnifiedFunction, cuLibraryGetUnifiedFunction, 12000) F(cuModuleLoad)
    F(cuModuleLoadData) F(cuModuleLoadDataEx) F(cuModuleUnload) F(cuModuleGetLoadingMode)
    F(cuModuleGetFunction) V(cuModuleGetFunctionCount, cuModuleGetFunctionCount, 12040)
    V(cuModuleEnumerateFunctions, cuModuleEnumerateFunctions, 12040)
    V(cuModuleGetGlobal, cuModuleGetGlobal_v2, 0) V(cuKernelGetFunction, cuKernelGetFunction, 12000)
    V(cuKernelGetLibrary, cuKernelGetLibrary, 12050) V(cuKernelGetName, cuKernelGetName, 12030)
    V(cuKernelGetParamInfo, cuKernelGetParamInfo, 12040)
    V(cuKernelGetParamCount, cuKernelGetParamCount, 13000)
    V(cuKernelGetAttribute, cuKernelGetAttribute, 12000)
    V(cuKernelSetAttribute, cuKernelSetAttribute, 12000)
    V(cuKernelSetCacheConfig, cuKernelSetCacheConfig, 12000) F(cuFuncGetModule)
    V(cuFuncGetName, cuFuncGetName, 12030) V(cuFuncGetParamInfo, cuFuncGetParamInfo, 12040)
    V(cuFuncGetParamCount, cuFuncGetParamCount, 13000) F(cuFuncGetAttribute) F(cuFuncSetAttribute)
    F(cuFuncSetCacheConfig) V(cuFuncIsLoaded, cuFuncIsLoaded, 12040) V(cuFuncLoad, cuFuncLoad, 12040)
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor)
    F(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags) F(cuOccupancyMaxPotentialBlockSize)
    F(cuOccupancyAvailableDynamicSMemPerBlock) F(cuStreamCreate) F(cuStreamCreateWithPriority)
    V(cuStreamDestroy, cuStreamDestroy_v2, 0) F(cuStreamSynchronize) F(cuStreamQuery)
    F(cuStreamGetFlags) F(cuStreamGetPriority) V(cuStreamGetId, cuStreamGetId, 12000) F(cuStreamGetCtx)
    V(cuStreamGetCtx, cuStreamGetCtx_v2, 12050) V(cuStreamGetDevice, cuStreamGetDevice, 12080)
    V(cuStreamGetGreenCtx, cuStreamGetGreenCtx, 12040) F(cuStreamIsCapturing)
    V(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v2, 11030)
    V(cuStreamGetCaptureInfo, cuStreamGetCaptureInfo_v3, 12030) F(cuStreamWaitEvent) F(cuEventCreate)
    F(cuEventRecord) F(cuEventRecordWithFlags) F(cuEventQuery) F(cuEventSynchronize)
    V(cuEventDestroy, cuEventDestroy_v2, 0) V(cuEventElapsedTime, cuEventElapsedTime_v2, 0)
    F(cuLaunchKernel) V(cuLaunchKernelEx, cuLaunchKernelEx, 11060) F(cuLaunchCooperativeKernel)
    F(cuLaunchHostFunc) V(cuMemAlloc, cuMemAlloc_v2, 0) V(cuMemFree, cuMemFree_v2, 0)
    F(cuMemAllocManaged) V(cuMemAllocHost, cuMemAllocHost_v2, 0) F(cuMemFreeHost) F(cuMemHostAlloc)
    F(cuMemAllocAsync) F(cuMemAllocFromPoolAsync) F(cuMemFreeAsync) V(cuMemGetInfo, cuMemGetInfo_v2, 0)
    F(cuMemcpy) V(cuMemcpyHtoD, cuMemcpyHtoD_v2, 0) V(cuMemcpyDtoH, cuMemcpyDtoH_v2, 0)
    V(cuMemcpyDtoD, cuMemcpyDtoD_v2, 0) F(cuMemcpyAsync) V(cuMemcpyHtoDAsync, cuMemcpyHtoDAsync_v2, 0)
    V(cuMemcpyDtoHAsync, cuMemcpyDtoHAsync_v2, 0) V(cuMemcpyDtoDAsync, cuMemcpyDtoDAsync_v2, 0)
    V(cuMemsetD8, cuMemsetD8_v2, 0) V(cuMemsetD16, cuMemsetD16_v2, 0) V(cuMemsetD32, cuMemsetD32_v2, 0)
    F(cuMemsetD8Async) F(cuMemsetD16Async) F(cuMemsetD32Async) F(cuDeviceGetDefaultMemPool)
    F(cuDeviceGetMemPool) F(cuMemPoolSetAttribute) F(cuMemPoolGetAttribute) F(cuMemPoolTrimTo)
    V(cuGetProcAddress, cuGetProcAddress, 0) V(cuGetProcAddress, cuGetProcAddress_v2, 12000)
    STUBS(F)
};

API CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags, int *status) {
    (void)flags;  // per-thread default streams are no different here
    if (!name || !out) return INVALID_VALUE;
    int limit = driver_version(), best = -1,
        state = 1;  // 1: no such symbol, 2: not in this version, 0: found
    if (version < limit) limit = version;
    *out = NULL;
    for (size_t n = 0; n < sizeof functions / sizeof *functions; n++) {
        if (strcmp(functions[n].name, name)) continue;
        if (state == 1) state = 2;
        if (functions[n].since > limit || functions[n].since <= best) continue;
        best = functions[n].since;
        memcpy(out, &functions[n].function, sizeof *out);
        state = 0;
    }
    if (status) *status = state;
    const char *trace = getenv("FAKE_CUDA_LOG_LOOKUPS");
    if (trace && *trace) logged(state ? NOT_FOUND : OK, "lookup", "name:s version:d", name, version);
    return state ? NOT_FOUND : OK;
}

API CUresult cuGetProcAddress(const char *name, void **out, int version, uint64_t flags) {
    return cuGetProcAddress_v2(name, out, version, flags, NULL);
}
