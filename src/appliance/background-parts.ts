/** The parts of each kind of background work: event consumers and jobs of the resources, and workers of the composition root. */
import { LEASES, type LeaseName } from '../cluster/leases.js'
import type { AnyConsumer } from '../events/consumer.js'
import type { Dispatcher } from '../events/dispatcher.js'
import type { OpenResource } from '../resource/resource.js'
import type { JobGroups } from '../scheduler/job-groups.js'
import type { Job } from '../scheduler/scheduler.js'
import type { BackgroundParts } from './background-work.js'

/** A worker of a kind, besides its consumers and jobs. */
export interface KindWorker {
  start(): void
  /** Finishes what is in hand. `start` may follow. */
  stop(): Promise<void>
}

export interface BackgroundPartsOf {
  readonly resources: readonly OpenResource[]
  readonly dispatcher: Dispatcher
  readonly jobs: JobGroups<LeaseName>
  readonly workers: Partial<Readonly<Record<LeaseName, KindWorker>>>
  /** How long jobs may take to end. */
  readonly graceMs: () => number
  /** Besides that of event consumers. */
  readonly wake: BackgroundParts['wake']
}

/** The consumers of all resources. */
export function consumersOf(resources: readonly OpenResource[]): AnyConsumer[] {
  return resources.flatMap(({ consumers = [] }) => consumers)
}

/** The jobs of all resources by kind. @param others of the kind `jobs`, besides */
export function jobsByKind(
  resources: readonly OpenResource[],
  others: readonly Job[],
): ReadonlyMap<LeaseName, readonly Job[]> {
  const all = [{ jobs: others }, ...resources]
  return new Map(
    LEASES.map(kind => [
      kind,
      all.flatMap(({ jobs = [], lease = 'jobs' }: OpenResource) => (lease === kind ? jobs : [])),
    ]),
  )
}

export function backgroundParts(parts: BackgroundPartsOf): BackgroundParts {
  const { resources, dispatcher, jobs, workers } = parts
  const consumerNames = (kind: LeaseName) =>
    consumersOf(resources.filter(({ lease = 'jobs' }) => lease === kind)).map(({ name }) => name)
  return {
    async start(kind) {
      // First, since what follows appends events.
      await dispatcher.start(consumerNames(kind))
      workers[kind]?.start()
      await jobs.start(kind)
    },
    async stop(kind) {
      const haveEnded = await jobs.stop(kind, parts.graceMs())
      await Promise.all([dispatcher.stop(consumerNames(kind)), workers[kind]?.stop()])
      return haveEnded
    },
    wake: { ...parts.wake, events: () => dispatcher.wake() },
  }
}
