/* Stands in for the driver's library: what it answers is set by FAKE_ variables of the environment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
typedef unsigned long long u64;
static int setting(const char *name) { const char *text = getenv(name); return text ? atoi(text) : 0; }
static int calls;
static int refused(void *card) {
    if ((long)card == 2 && setting("FAKE_LOST_AFTER") && calls > setting("FAKE_LOST_AFTER")) return 15;
    return 0;
}
int nvmlInitWithFlags(unsigned flags) { return setting("FAKE_GPUS") < 0 ? 9 : 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void **card) {
    if ((int)index >= setting("FAKE_GPUS")) return 2;
    *card = (void *)(long)(index + 1); return 0; }
int nvmlDeviceGetName(void *card, char *text, unsigned length) {
    snprintf(text, length, "Stand-in %ld", (long)card); return 0; }
struct rates { unsigned gpu, memory; };
int nvmlDeviceGetUtilizationRates(void *card, struct rates *found) {
    calls++;
    found->gpu = calls % 2 ? 90 : 10; found->memory = 5; return refused(card); }
struct memory { u64 total, free, used; };
int nvmlDeviceGetMemoryInfo(void *card, struct memory *found) {
    found->total = 8ull << 30; found->used = 3ull << 30; found->free = 5ull << 30; return refused(card); }
int nvmlDeviceGetPcieThroughput(void *card, int which, unsigned *kb) { *kb = 2048 << which; return refused(card); }
#ifndef OLD
int nvmlDeviceGetPowerUsage(void *card, unsigned *mw) { *mw = 250000; return (long)card == 2 ? 3 : 0; }
int nvmlDeviceGetCurrentClocksEventReasons(void *card, u64 *bits) { *bits = 0x4; return 0; }
#endif
int nvmlDeviceGetCurrentClocksThrottleReasons(void *card, u64 *bits) { *bits = 0x20; return 0; }
int nvmlDeviceGetTemperature(void *card, int sensor, unsigned *found) { *found = 61; return refused(card); }
struct degrees { unsigned version; int sensor; int value; };
int nvmlDeviceGetTemperatureV(void *card, struct degrees *found) { found->value = 61; return refused(card); }
int nvmlDeviceGetClockInfo(void *card, int type, unsigned *mhz) { *mhz = 1500; return refused(card); }
int nvmlDeviceGetP2PStatus(void *one, void *other, int what, int *status) {
    *status = what == 2 ? !setting("FAKE_NVLINK") : setting("FAKE_NO_PEERS"); return 0; }
int nvmlDeviceGetTopologyCommonAncestor(void *one, void *other, int *level) {
    *level = setting("FAKE_LEVEL"); return 0; }
const char *nvmlErrorString(int code) {
    switch (code) { case 3: return "Not Supported"; case 9: return "Driver Not Loaded"; case 15: return "GPU is lost"; }
    return "Invalid Argument"; }
