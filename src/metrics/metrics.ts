/**
 * The Prometheus registry: counters updated as things happen, and sources read at each scrape.
 *
 * Created by the composition root before anything that is counted. Other modules report through plain callbacks and do not depend on
 * metrics. Sources run in parallel and cache what is expensive to compute (`world/time/cached-count.ts`).
 * Names and labels are part of the operator's interface (`docs/monitoring.md`). Label values come from small fixed sets, never from
 * remote input. Fails: if a source fails, its series keep their values and the failure is counted.
 */
import { Counter, Registry } from 'prom-client'

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
