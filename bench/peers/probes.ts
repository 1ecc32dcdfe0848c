/**
 * Whom a work holds up: two clients that ask, one for a list and one with a mail, at an even pace whatever happens beside.
 *
 * Called by `audience.ts`, runs in this process. A probe is sent when its time has come, whether or not the one before was
 * answered, and the time it waits counts from then. Fails: rejects with the first answer that is not a 2xx.
 */
import { sendLoad, type Load } from './api-load.js'

export interface Probes {
  begin(): void
  /** @returns latencies since `begin`, ms; of those that were answered */
  end(): { readonly reads: readonly number[]; readonly sends: readonly number[] }
  close(): Promise<void>
}

const USUAL_EVERY_MS = 10

/** @param everyMs between two of each; 10 where absent */
export function openProbes({
  path,
  body,
  everyMs = USUAL_EVERY_MS,
  ...target
}: Pick<Load, 'port' | 'key'> &
  Required<Pick<Load, 'path' | 'body'>> & { readonly everyMs?: number }): Probes {
  let number = 0
  let latencies: { reads: number[]; sends: number[] } | undefined
  let failure: Error | undefined
  const underWay = new Set<Promise<unknown>>()
  const probe = (load: Pick<Load, 'path' | 'body'>, into: number[]) => {
    const asked = sendLoad({ ...target, ...load, connections: 1, requests: 1, limitMs: Infinity })
      .then(result => into.push(...result.latencies))
      .catch((error: unknown) => (failure = error as Error))
      .finally(() => underWay.delete(asked))
    underWay.add(asked)
  }
  const timer = setInterval(() => {
    if (!latencies) return
    const at = number++
    probe({ path: () => path(at) }, latencies.reads)
    probe({ body: () => body(at) }, latencies.sends)
  }, everyMs)
  return {
    begin: () => (latencies = { reads: [], sends: [] }),
    end() {
      const told = latencies ?? { reads: [], sends: [] }
      latencies = undefined
      if (failure) throw failure
      return told
    },
    async close() {
      clearInterval(timer)
      await Promise.all(underWay)
    },
  }
}
