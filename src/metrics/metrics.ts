/**
 * The metrics of an appliance, in Prometheus' terms: what is counted as it happens, and what is looked up when somebody asks.
 *
 * Opened by the composition root before everything that is counted; each part hands its figures to a function and knows no metrics.
 * Sources are asked together for each scrape and keep their answers where asking costs something. Nothing here reads a table.
 * Names and labels are part of the operator's interface (`docs/monitoring.md`); labels have few values, none of them made of what
 * strangers write. Fails: a source that fails leaves its series as they were and is counted.
 */
import { Counter, Registry } from 'prom-client'

/** Sets its series anew. */
export type Source = () => Promise<void> | void

export class Metrics {
  readonly registry = new Registry()
  private readonly sources: { readonly name: string; readonly update: Source }[] = []
  private readonly failures = new Counter({
    name: 'postroad_metrics_source_failures_total',
    help: 'Scrapes for which a part of the appliance could not tell its figures.',
    labelNames: ['source'] as const,
    registers: [this.registry],
  })

  /** @param name for the count of its failures */
  addSource(name: string, update: Source): void {
    this.failures.inc({ source: name }, 0)
    this.sources.push({ name, update })
  }

  /** Names of all series, for whoever checks dashboards and rules against them. */
  names(): string[] {
    return this.registry.getMetricsAsArray().map(({ name }) => name)
  }

  /** In the text format 0.0.4. */
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
