/**
 * Whom a work holds up: two clients that ask, one for a list and one with a mail, at an even pace whatever happens beside.
 *
 * Called by `audience.ts`, runs in this process. A probe is sent when its time has come, whether or not the one before was
 * answered, and the time it waits counts from then; only so many are under way at once, since a server refuses connections without end.
 * Fails: rejects with the first answer that is not a 2xx.
 */
import { Agent } from 'node:http'
import { sendLoad, type Load } from './api-load.js'

export interface Probes {
  begin(): void
  /** @returns latencies since `begin`, ms; of those that were answered */
  end(): { readonly reads: readonly number[]; readonly sends: readonly number[] }
  close(): Promise<void>
}

/** Twenty of each in a second: more would be a load of its own, on a machine of two cores. */
const USUAL_EVERY_MS = 50
/** Under way at a time; what comes beyond waits here, and its time counts. */
const MOST_UNDER_WAY = 100

/** @param everyMs between two of each; 50 where absent */
export function openProbes({
  path,
  body,
  everyMs = USUAL_EVERY_MS,
  ...target
}: Pick<Load, 'port' | 'key'> &
  Required<Pick<Load, 'path' | 'body'>> & { readonly everyMs?: number }): Probes {
  const agent = new Agent({ keepAlive: true, maxSockets: MOST_UNDER_WAY })
  let number = 0
  let latencies: { reads: number[]; sends: number[] } | undefined
  let failure: Error | undefined
  const underWay = new Set<Promise<unknown>>()
  const held: (() => void)[] = []
  const probe = (load: Pick<Load, 'path' | 'body'>, into: number[]) => {
    const dueAt = performance.now()
    const send = () => {
      const asked = sendLoad({ ...target, ...load, agent, connections: 1, requests: 1, limitMs: Infinity })
        .then(() => into.push(performance.now() - dueAt))
        .catch((error: unknown) => (failure = error as Error))
        .finally(() => {
          underWay.delete(asked)
          held.shift()?.()
        })
      underWay.add(asked)
    }
    if (underWay.size < MOST_UNDER_WAY) send()
    else held.push(send)
  }
  const timer = setInterval(() => {
    if (!latencies) return
    const at = number++
    probe({ path: () => path(at) }, latencies.reads)
    probe({ body: () => body(at) }, latencies.sends)
  }, everyMs)
  return {
    begin() {
      failure = undefined
      latencies = { reads: [], sends: [] }
    },
    end() {
      const told = latencies ?? { reads: [], sends: [] }
      latencies = undefined
      if (failure) throw failure
      return told
    },
    async close() {
      clearInterval(timer)
      while (underWay.size > 0) await Promise.all(underWay)
      agent.destroy()
    },
  }
}
