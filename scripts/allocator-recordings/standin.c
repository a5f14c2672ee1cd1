// A stand-in for the CUDA runtime and driver that does the accounting of memory and
// nothing else: no kernel runs, no byte is copied. PyTorch's own caching allocator
// (libc10_cuda.so) runs over it unchanged, on a machine without a GPU, and records its
// own history. Loaded before everything else (LD_PRELOAD) under the name libcuda.so.1.
//
//   device      one, of STANDIN_CAPACITY bytes, of which STANDIN_OTHER are taken by others
//   cudaMalloc  address space without memory behind it, lowest free address first, in
//               steps of 2 MiB; fails with "out of memory" where nothing is left
//   cuMem*      the same account for physical memory that is mapped piece by piece
//   events      done STANDIN_LAG ticks of a clock after they were recorded, or once waited
//               for; standin_tick() moves the clock on
//   capture     a stream is capturing between its begin and its end
//
// Written from the public documentation of the CUDA runtime, driver and NVML interfaces.
// Numbers of errors and places of fields are theirs. Not thread-safe beyond one lock.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MIB (1ull << 20)
#define GRAIN (2 * MIB)
#define ARENA (1ull << 40)
#define API __attribute__((visibility("default")))

enum { OK = 0, INVALID = 1, NO_MEMORY = 2, NOT_READY = 600, NOT_FOUND = 500, CAPTURE = 906 };

typedef struct range {
	uint64_t addr, size;
	struct range *next;
} range;

typedef struct { uint64_t size; int refs; } physical;
typedef struct mapping {
	uint64_t addr, size;
	physical *of;
	struct mapping *next;
} mapping;
typedef struct { uint64_t done_at; int recorded, done; uint64_t stream; } event;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t capacity = 1024 * MIB, other, used, now, lag;
static uint64_t mallocs, frees, creates, releases, refused, syncs;
static uint64_t heap_base, va_base;
static range *heap, *reserved;
static mapping *maps;
static __thread int last_error, device;

static uint64_t number(const char *name, uint64_t unset) {
	const char *s = getenv(name);
	return s ? strtoull(s, NULL, 0) : unset;
}

// arena takes address space at a fixed place, so that two runs give the same addresses.
static uint64_t arena(uint64_t at) {
	void *p = mmap((void *)at, ARENA, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
	if (p == MAP_FAILED) {
		perror("standin: no address space");
		abort();
	}
	return (uint64_t)p;
}

__attribute__((constructor)) static void start(void) {
	capacity = number("STANDIN_CAPACITY", 1024 * MIB);
	other = number("STANDIN_OTHER", 0);
	lag = number("STANDIN_LAG", 0);
	heap_base = arena(0x200000000000ull);
	va_base = arena(0x300000000000ull);
}

static int fail(int e) {
	if (e) last_error = e;
	return e;
}

// place finds the lowest gap of size bytes and enters it.
static uint64_t place(range **list, uint64_t base, uint64_t size) {
	uint64_t at = base;
	range **p = list;
	while (*p && (*p)->addr - at < size) {
		at = (*p)->addr + (*p)->size;
		p = &(*p)->next;
	}
	if (at + size > base + ARENA) return 0;
	range *r = malloc(sizeof *r);
	*r = (range){at, size, *p};
	*p = r;
	return at;
}

static uint64_t leave(range **list, uint64_t addr) {
	for (range **p = list; *p; p = &(*p)->next)
		if ((*p)->addr == addr) {
			range *r = *p;
			uint64_t size = r->size;
			*p = r->next;
			free(r);
			return size;
		}
	return 0;
}

// ---- control, for the recording script (ctypes)
API void standin_tick(uint64_t n) { now += n; }
API void standin_lag(uint64_t n) { lag = n; }
API void standin_device(uint64_t bytes, uint64_t of_others) { capacity = bytes; other = of_others; }
API void standin_counts(uint64_t *out) {
	uint64_t v[] = {used, mallocs, frees, creates, releases, refused, syncs};
	memcpy(out, v, sizeof v);
}

// ---- memory
static int take(uint64_t size) {
	if (size > capacity || other + used + size > capacity) {
		refused++;
		return NO_MEMORY;
	}
	used += size;
	return OK;
}

API int cudaMalloc(void **out, size_t size) {
	pthread_mutex_lock(&lock);
	uint64_t n = (size + GRAIN - 1) / GRAIN * GRAIN, at = 0;
	int e = take(n);
	if (!e && !(at = place(&heap, heap_base, n))) { used -= n; e = NO_MEMORY; }
	if (!e) { mallocs++; *out = (void *)at; }
	pthread_mutex_unlock(&lock);
	return fail(e);
}

API int cudaFree(void *p) {
	if (!p) return OK;
	pthread_mutex_lock(&lock);
	uint64_t n = leave(&heap, (uint64_t)p);
	used -= n;
	frees++;
	pthread_mutex_unlock(&lock);
	return fail(n ? OK : INVALID);
}

API int cudaMemGetInfo(size_t *left, size_t *total) {
	*left = other + used > capacity ? 0 : capacity - other - used;
	*total = capacity;
	return OK;
}

API int cudaMallocHost(void **p, size_t n) { return (*p = malloc(n)) ? OK : NO_MEMORY; }
API int cudaHostAlloc(void **p, size_t n, unsigned f) { (void)f; return cudaMallocHost(p, n); }
API int cudaFreeHost(void *p) { free(p); return OK; }

API int cuMemAddressReserve(uint64_t *out, size_t size, size_t align, uint64_t at, unsigned long long f) {
	(void)align; (void)at; (void)f;
	pthread_mutex_lock(&lock);
	*out = place(&reserved, va_base, (size + GRAIN - 1) / GRAIN * GRAIN);
	pthread_mutex_unlock(&lock);
	return *out ? OK : NO_MEMORY;
}
API int cuMemAddressFree(uint64_t at, size_t size) {
	(void)size;
	pthread_mutex_lock(&lock);
	uint64_t n = leave(&reserved, at);
	pthread_mutex_unlock(&lock);
	return n ? OK : INVALID;
}
API int cuMemGetAllocationGranularity(size_t *out, const void *prop, int opt) { (void)prop; (void)opt; *out = GRAIN; return OK; }

static void drop(physical *p) {
	if (--p->refs == 0) { used -= p->size; releases++; free(p); }
}

API int cuMemCreate(uint64_t *out, size_t size, const void *prop, unsigned long long f) {
	(void)prop; (void)f;
	if (size % GRAIN) return INVALID;
	pthread_mutex_lock(&lock);
	int e = take(size);
	if (!e) {
		physical *p = malloc(sizeof *p);
		*p = (physical){size, 1};
		*out = (uint64_t)p;
		creates++;
	}
	pthread_mutex_unlock(&lock);
	return e;
}
API int cuMemRelease(uint64_t h) {
	pthread_mutex_lock(&lock);
	drop((physical *)h);
	pthread_mutex_unlock(&lock);
	return OK;
}
API int cuMemMap(uint64_t at, size_t size, size_t off, uint64_t h, unsigned long long f) {
	(void)off; (void)f;
	pthread_mutex_lock(&lock);
	mapping *m = malloc(sizeof *m);
	*m = (mapping){at, size, (physical *)h, maps};
	m->of->refs++;
	maps = m;
	pthread_mutex_unlock(&lock);
	return OK;
}
API int cuMemUnmap(uint64_t at, size_t size) {
	pthread_mutex_lock(&lock);
	int found = 0;
	for (mapping **p = &maps; *p;) {
		mapping *m = *p;
		if (m->addr >= at && m->addr + m->size <= at + size) {
			drop(m->of);
			*p = m->next;
			free(m);
			found = 1;
		} else p = &m->next;
	}
	pthread_mutex_unlock(&lock);
	return found ? OK : INVALID;
}
API int cuMemSetAccess(uint64_t at, size_t size, const void *d, size_t n) { (void)at; (void)size; (void)d; (void)n; return OK; }

// ---- device
API int cudaGetDeviceCount(int *n) { *n = 1; return OK; }
API int cudaGetDevice(int *d) { *d = device; return OK; }
API int cudaSetDevice(int d) { return d ? fail(101) : OK; }
API int cudaDriverGetVersion(int *v) { *v = 13030; return OK; }
API int cudaRuntimeGetVersion(int *v) { *v = (int)number("STANDIN_RUNTIME", 12080); return OK; }
API int cuDriverGetVersion(int *v) { return cudaDriverGetVersion(v); }
API int cuInit(unsigned f) { (void)f; return OK; }
API int cuDeviceGetCount(int *n) { *n = 1; return OK; }
API int cuDeviceGet(int *d, int i) { *d = i; return OK; }
API int cuCtxGetCurrent(void **c) { *c = (void *)1; return OK; }
API int cuDevicePrimaryCtxGetState(int d, unsigned *f, int *active) { (void)d; *f = 0; *active = 1; return OK; }
API int cudaDeviceGetStreamPriorityRange(int *low, int *high) { *low = 0; *high = -5; return OK; }
API int cudaDeviceCanAccessPeer(int *can, int a, int b) { (void)a; (void)b; *can = 0; return OK; }
API int cudaDeviceGetPCIBusId(char *out, int n, int d) { (void)d; snprintf(out, n, "0000:01:00.0"); return OK; }

// The first fields of cudaDeviceProp lie where they lie in CUDA 12 and 13.
static int properties(char *p) {
	memset(p, 0, 1000);
	strcpy(p, "Stand-in without a GPU");
	*(uint64_t *)(p + 288) = capacity;
	*(uint64_t *)(p + 296) = 48 << 10;
	*(int *)(p + 304) = 65536;
	*(int *)(p + 308) = 32;
	*(int *)(p + 320) = 1024;
	*(int *)(p + 360) = 9; // major, minor
	*(int *)(p + 364) = 0;
	for (int at = 384; at <= 388; at += 4) *(int *)(p + at) = 8; // multiprocessors, in 13 and 12
	return OK;
}
API int cudaGetDeviceProperties(char *p, int d) { (void)d; return properties(p); }
API int cudaGetDeviceProperties_v2(char *p, int d) { (void)d; return properties(p); }

static int attribute(int a) {
	switch (a) {
	case 1: return 1024; // threads per block
	case 10: return 32;  // warp
	case 16: return 8;   // multiprocessors
	case 75: return 9;   // major
	case 102: return 1;  // virtual memory management
	}
	return 0;
}
API int cudaDeviceGetAttribute(int *v, int a, int d) { (void)d; *v = attribute(a); return OK; }
API int cuDeviceGetAttribute(int *v, int a, int d) { (void)d; *v = attribute(a); return OK; }
// cudaPointerAttributes: type (2: device), device, two pointers.
API int cudaPointerGetAttributes(char *out, const void *p) {
	uint64_t a = (uint64_t)p;
	memset(out, 0, 24);
	*(int *)out = (a >= heap_base && a < heap_base + ARENA) || (a >= va_base && a < va_base + ARENA) ? 2 : 0;
	*(const void **)(out + 8) = p;
	return OK;
}

// ---- errors
API int cudaGetLastError(void) { int e = last_error; last_error = OK; return e; }
API int cudaPeekAtLastError(void) { return last_error; }
static const char *text(int e) {
	switch (e) {
	case OK: return "no error";
	case INVALID: return "invalid argument";
	case NO_MEMORY: return "out of memory";
	case NOT_READY: return "device not ready";
	case 101: return "invalid device ordinal";
	}
	return "unknown error";
}
API const char *cudaGetErrorString(int e) { return text(e); }
API const char *cudaGetErrorName(int e) { return e == NO_MEMORY ? "cudaErrorMemoryAllocation" : e ? "cudaErrorUnknown" : "cudaSuccess"; }
API int cuGetErrorString(int e, const char **s) { *s = text(e); return OK; }
API int cuGetErrorName(int e, const char **s) { *s = e == NO_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN"; return OK; }

// ---- streams, capture, events
#define STREAMS 4096
static int streams;
static uint64_t capturing[STREAMS + 1], captures;
static uint64_t waited[STREAMS + 1]; // everything recorded before this count is done
static uint64_t records;

static int stream_index(void *s) {
	uint64_t n = ((uint64_t)s - 0x500000000000ull) / 256;
	return n < STREAMS ? (int)n + 1 : 0;
}
API int cudaStreamCreateWithPriority(void **s, unsigned f, int p) {
	(void)f; (void)p;
	if (streams >= STREAMS) return fail(INVALID);
	*s = (void *)(0x500000000000ull + 256ull * streams++);
	return OK;
}
API int cudaStreamCreateWithFlags(void **s, unsigned f) { return cudaStreamCreateWithPriority(s, f, 0); }
API int cudaStreamCreate(void **s) { return cudaStreamCreateWithPriority(s, 0, 0); }
API int cudaStreamGetPriority(void *s, int *p) { (void)s; *p = 0; return OK; }
API int cudaStreamQuery(void *s) { (void)s; return OK; }
API int cudaStreamSynchronize(void *s) { syncs++; waited[stream_index(s)] = records; return OK; }
API int cudaDeviceSynchronize(void) {
	syncs++;
	for (int i = 0; i <= STREAMS; i++) waited[i] = records;
	return OK;
}
API int cudaStreamBeginCapture(void *s, int mode) { (void)mode; capturing[stream_index(s)] = ++captures; return OK; }
API int cudaStreamEndCapture(void *s, void **g) { capturing[stream_index(s)] = 0; *g = (void *)0x600000000100ull; return OK; }
API int cudaStreamIsCapturing(void *s, int *st) { *st = capturing[stream_index(s)] != 0; return OK; }
static int capture_info(void *s, int *st, unsigned long long *id) {
	uint64_t c = capturing[stream_index(s)];
	*st = c != 0;
	if (id) *id = c;
	return OK;
}
API int cudaStreamGetCaptureInfo(void *s, int *st, unsigned long long *id) { return capture_info(s, st, id); }
API int cudaStreamGetCaptureInfo_v2(void *s, int *st, unsigned long long *id, void **g, const void ***deps, size_t *n) {
	if (g) *g = (void *)0x600000000100ull;
	if (deps) *deps = NULL;
	if (n) *n = 0;
	return capture_info(s, st, id);
}
API int cudaStreamGetCaptureInfo_v3(void *s, int *st, unsigned long long *id, void **g, const void ***deps, const void **edges, size_t *n) {
	if (edges) *edges = NULL;
	return cudaStreamGetCaptureInfo_v2(s, st, id, g, deps, n);
}
API int cudaThreadExchangeStreamCaptureMode(int *m) { (void)m; return OK; }
API int cudaGraphInstantiate(void **e, void *g, unsigned long long f) { (void)g; (void)f; *e = (void *)0x600000000200ull; return OK; }
API int cudaGraphInstantiateWithFlags(void **e, void *g, unsigned long long f) { return cudaGraphInstantiate(e, g, f); }
API int cudaGraphGetNodes(void *g, void **nodes, size_t *n) { (void)g; (void)nodes; *n = 1; return OK; }

API int cudaEventCreateWithFlags(event **e, unsigned f) { (void)f; *e = calloc(1, sizeof **e); return OK; }
API int cudaEventCreate(event **e) { return cudaEventCreateWithFlags(e, 0); }
API int cudaEventDestroy(event *e) { free(e); return OK; }
API int cudaEventRecord(event *e, void *s) {
	*e = (event){now + lag, (int)++records, 0, (uint64_t)stream_index(s)};
	return OK;
}
API int cudaEventRecordWithFlags(event *e, void *s, unsigned f) { (void)f; return cudaEventRecord(e, s); }
API int cudaEventQuery(event *e) {
	if (!e->recorded || e->done || now >= e->done_at || (uint64_t)e->recorded <= waited[e->stream]) return OK;
	return fail(NOT_READY);
}
API int cudaEventSynchronize(event *e) { syncs++; e->done = 1; return OK; }
API int cudaEventElapsedTime(float *ms, event *a, event *b) { (void)a; (void)b; *ms = 0; return OK; }

// ---- kernels and their registration
API void **__cudaRegisterFatBinary(void *f) { (void)f; static void *h; return &h; }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *n, const void *f, int b, size_t s) { (void)f; (void)b; (void)s; *n = 1; return OK; }
API int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *n, const void *f, int b, size_t s, unsigned g) { (void)g; return cudaOccupancyMaxActiveBlocksPerMultiprocessor(n, f, b, s); }

// ---- entry points of the driver by name; what is not here does nothing and succeeds
static int nothing(void) { return OK; }
static void *entry(const char *name) {
	void *p = dlsym(RTLD_DEFAULT, name);
	if (getenv("STANDIN_TRACE")) fprintf(stderr, "standin: asked for %s%s\n", name, p ? "" : ": does nothing");
	return p ? p : (void *)nothing;
}
API int cudaGetDriverEntryPoint(const char *name, void **fn, unsigned long long f, int *q) {
	(void)f;
	*fn = entry(name);
	if (q) *q = 0;
	return OK;
}
API int cudaGetDriverEntryPoint_ptsz(const char *name, void **fn, unsigned long long f, int *q) { return cudaGetDriverEntryPoint(name, fn, f, q); }
API int cudaGetDriverEntryPointByVersion(const char *name, void **fn, unsigned v, unsigned long long f, int *q) { (void)v; return cudaGetDriverEntryPoint(name, fn, f, q); }
API int cuGetProcAddress_v2(const char *name, void **fn, int v, uint64_t f, int *q) { (void)v; return cudaGetDriverEntryPoint(name, fn, f, q); }
API int cuGetProcAddress(const char *name, void **fn, int v, uint64_t f) { (void)v; return cudaGetDriverEntryPoint(name, fn, f, NULL); }

// ---- NVML, for the list of processes in the message of an OOM
API int nvmlInit_v2(void) { return OK; }
API int nvmlDeviceGetCount_v2(unsigned *n) { *n = 1; return OK; }
API int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **d) { (void)id; *d = (void *)1; return OK; }
API int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { (void)i; *d = (void *)1; return OK; }
static int processes(unsigned *n, char *out, size_t stride) {
	unsigned have = other ? 2 : 1;
	if (*n < have) { *n = have; return 7; }
	*n = have;
	memset(out, 0, have * stride);
	if (other) {
		*(unsigned *)out = 4242;
		*(unsigned long long *)(out + 8) = other;
		out += stride;
	}
	*(unsigned *)out = (unsigned)getpid();
	*(unsigned long long *)(out + 8) = used;
	return OK;
}
API int nvmlDeviceGetComputeRunningProcesses(void *d, unsigned *n, char *out) { (void)d; return processes(n, out, 16); }
API int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, char *out) { (void)d; return processes(n, out, 24); }
API int nvmlSystemGetCudaDriverVersion_v2(int *v) { return cudaDriverGetVersion(v); }
// There is no NVLink (3: not supported), and the device is in no fabric (state 0).
API int nvmlDeviceGetNvLinkRemoteDeviceType(void *d, unsigned link, int *type) { (void)d; (void)link; (void)type; return 3; }
API int nvmlDeviceGetNvLinkRemotePciInfo_v2(void *d, unsigned link, void *pci) { (void)d; (void)link; (void)pci; return 3; }
API int nvmlDeviceGetGpuFabricInfoV(void *d, char *info) { (void)d; memset(info + 4, 0, 28); return OK; }
