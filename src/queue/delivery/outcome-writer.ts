/**
 * Records delivery outcomes in batches; used by the delivery runner.
 *
 * While the database is unavailable outcomes wait, each in its place among the deliveries under way, so no new ones begin. An outcome that
 * cannot be written keeps nobody else waiting: its message gets its status without the details; failing that, its queue row is removed or
 * deferred; failing that too, it stays claimed, and only the next start delivers it again.
 */
import { type BatchWriterParts, BatchWriter } from '../../db/batch-writer.js'
import {
  type OnAttempt,
  moveQueueRow,
  recordOutcomes,
  recordVerdict,
  type FinishedAttempt,
} from './record-outcomes.js'

export interface OutcomeBatchesParts extends BatchWriterParts {
  readonly onAttempt?: OnAttempt | undefined
}

/** A batch stays a few ms of work; what is left over goes into the next. */
const BATCH = 50
/** From so many deliveries under way on, outcomes come in so fast that a few ms gather a batch. */
const BUSY = 16

interface Waiting {
  readonly finished: FinishedAttempt
  readonly done: (nextAttemptAt: number | undefined) => void
}

export class OutcomeWriter {
  private readonly writer: BatchWriter<Waiting, ReadonlyMap<string, number>>
  private isBusy = false

  constructor(parts: OutcomeBatchesParts) {
    const { log, onAttempt } = parts
    this.writer = new BatchWriter(parts, {
      noun: 'delivery outcome',
      size: BATCH,
      canWait: () => this.isBusy,
      record: (tx, batch) =>
        recordOutcomes(
          tx,
          batch.map(({ finished }) => finished),
          log,
          onAttempt,
        ),
      fallbacks: [
        (tx, { finished }) => recordVerdict(tx, finished, log, onAttempt),
        (tx, { finished }) => moveQueueRow(tx, finished),
      ],
      onRecorded: (batch, dueAgain) => {
        for (const { finished, done } of batch) done(dueAgain.get(finished.job.messageId))
      },
      onAbandoned: ({ done }) => done(undefined),
      describe: ({ finished: { job, outcome } }) => ({ message: job.messageId, outcome: outcome.kind }),
    })
  }

  /**
   * Resolves once the outcome is on disk, with the time at which the message falls due again if it stays queued. Never rejects.
   *
   * @param underWay deliveries whose outcome is still to come
   */
  add(finished: FinishedAttempt, underWay: number): Promise<number | undefined> {
    this.isBusy = underWay >= BUSY
    return new Promise(done => this.writer.add({ finished, done }))
  }

  /** Resolves when everything handed over is on disk. */
  idle(): Promise<void> {
    return this.writer.idle()
  }
}
