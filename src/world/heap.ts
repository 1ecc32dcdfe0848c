/**
 * Limits how much garbage V8 accumulates.
 *
 * By default V8 lets a heap grow to several times its live size before collecting. With several heaps, one per thread, that wastes
 * memory. More frequent collection costs CPU: 50 % instead of 100 % growth costs about 2 % more per send and saves 20 MB.
 */
import { setFlagsFromString } from 'node:v8'

/** Heap growth between collections, in percent of the live size. */
const GROWTH_PERCENT = 100

/** Applies to all heaps of the process, including threads started later. Call it at startup. */
export function limitHeapGrowth(): void {
  setFlagsFromString(`--heap-growing-percent=${GROWTH_PERCENT}`)
}
