/**
 * The Prometheus registry: counters updated as things happen, and sources read at each scrape.
 *
 * Created by the composition root before anything that is counted. Other modules report through plain callbacks and do not depend on
 * metrics. Sources run in parallel and cache what is expensive to compute.
 * Names and labels are part of the operator's interface (`docs/monitoring.md`). Label values come from small fixed sets, never from
 * remote input. Fails: if a source fails, its series keep their values and the failure is counted.
 */
import { Counter, Registry } from 'prom-client'
import type { Clock } from '../world/time/clock.js'

/** Updates its series. */
export type Source = () => Promise<void> | void

export class Metrics {
  readonly registry = new Registry()
  private readonly sources: { readonly name: string; readonly update: Source }[] = []
  private readonly failures = new Counter({
    name: 'postroad_metrics_source_failures_total',
    help: 'Scrapes in which a source could not be read.',
    labelNames: ['source'] as const,
    registers: [this.registry],
  })

  /** @param name label of its failure counter */
  addSource(name: string, update: Source): void {
    this.failures.inc({ source: name }, 0)
    this.sources.push({ name, update })
  }

  /** Names of all series, to check dashboards and alert rules against. */
  names(): string[] {
    return this.registry.getMetricsAsArray().map(({ name }) => name)
  }

  /** Text format 0.0.4. */
  async render(): Promise<string> {
    await Promise.all(this.sources.map(source => this.update(source)))
    return this.registry.metrics()
  }

  private async update({ name, update }: { readonly name: string; readonly update: Source }): Promise<void> {
    try {
      await update()
    } catch {
      this.failures.inc({ source: name })
    }
  }
}

export interface CountRest {
  /** How long a count is used at least, ms. */
  readonly holdsMs: number
  /** Pause after a count, as a multiple of its duration. */
  readonly rest: number
  /** Callers that arrive later than this after the pause wait for the next count, ms. */
  readonly patienceMs: number
}

const SCRAPED: CountRest = { holdsMs: 10_000, rest: 50, patienceMs: Infinity }
/** For figures that people watch: newer, at a 200th of a thread, and current at the first look. */
export const WATCHED: CountRest = { holdsMs: 1_000, rest: 200, patienceMs: 2_000 }

/**
 * Caches an expensive count: a scrape gets the last value while a new one is computed in the background.
 *
 * The pause between counts grows with their duration, so counting uses at most a fiftieth of a reader thread by default. Only the first count can fail a
 * scrape; later failures keep the last value.
 */
export function cachedCount<T>(
  clock: Clock,
  count: () => Promise<T>,
  { holdsMs, rest, patienceMs }: CountRest = SCRAPED,
): () => Promise<T> {
  let last: { readonly value: T; readonly until: number } | undefined
  let counting: Promise<T> | undefined

  async function countNow(): Promise<T> {
    const started = clock.monotonic()
    const value = await count()
    const ended = clock.monotonic()
    last = { value, until: ended + Math.max(holdsMs, rest * (ended - started)) }
    return value
  }

  return async () => {
    if (last && clock.monotonic() < last.until) return last.value
    counting ??= countNow().finally(() => (counting = undefined))
    if (!last) return counting
    const { value, until } = last
    const next = counting.catch(() => value)
    return clock.monotonic() < until + patienceMs ? value : next
  }
}
