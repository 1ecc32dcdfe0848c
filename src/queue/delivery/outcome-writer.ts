/**
 * Records delivery outcomes in batches, for the delivery runner.
 *
 * While the database is unavailable, pending outcomes keep their slots, so no new deliveries start. An outcome that
 * cannot be written does not block others: its message gets its status without the details; failing that, its queue row
 * is removed or deferred; failing that, it stays claimed, and the next start delivers it again.
 */
import { type BatchWriterParts, BatchWriter } from '../../db/batch-writer.js'
import {
  type OnAttempt,
  moveQueueRow,
  recordOutcomes,
  recordRest,
  recordVerdict,
  type FinishedAttempt,
} from './record-outcomes.js'

export interface OutcomeBatchesParts extends BatchWriterParts {
  readonly onAttempt?: OnAttempt | undefined
}

const BATCH = 50

export interface Recorded {
  /** False: nothing of it could be written, and the message stays claimed. */
  readonly isRecorded: boolean
  /** If the message stays queued. */
  readonly nextAttemptAt?: number | undefined
}

interface Waiting {
  readonly finished: FinishedAttempt
  readonly done: (recorded: Recorded) => void
}

export class OutcomeWriter {
  private readonly writer: BatchWriter<Waiting, ReadonlyMap<string, number>>

  constructor(parts: OutcomeBatchesParts) {
    const { log, onAttempt } = parts
    this.writer = new BatchWriter(parts, {
      events: {
        writeFailed: 'delivery outcome write failed',
        incomplete: 'delivery outcome recorded incompletely',
        abandoned: 'delivery outcome abandoned',
      },
      size: BATCH,
      record: (tx, batch, isRepeated) =>
        (isRepeated ? recordRest : recordOutcomes)(
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
        for (const { finished, done } of batch)
          done({ isRecorded: true, nextAttemptAt: dueAgain.get(finished.job.messageId) })
      },
      onAbandoned: ({ done }) => done({ isRecorded: false }),
      describe: ({ finished: { job, outcome } }) => ({ message: job.messageId, outcome: outcome.kind }),
    })
  }

  /** Resolves after the commit. Never rejects. */
  add(finished: FinishedAttempt): Promise<Recorded> {
    return new Promise(done => this.writer.add({ finished, done }))
  }

  idle(): Promise<void> {
    return this.writer.idle()
  }
}
