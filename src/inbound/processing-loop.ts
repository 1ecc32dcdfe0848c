/**
 * Processes inbound mail: reads what was stored, batch by batch in the order of its arrival, and has it take effect.
 *
 * Made by the processor, one for mail whose every recipient is a signed address and one for all other, so that what
 * anybody may send never stands before a bounce. Reading is the work of a thread that is this loop's alone; here only rows are
 * read and written, a few milliseconds at a time. A mail over which the thread ends twice, or takes too long twice, is `failed`
 * and kept; what was read before it in the same batch counts. Fails: never; trouble with the database is logged and tried
 * again after a pause.
 */
import { retryDelayMs, type BackoffPolicy } from '../core/backoff.js'
import { describeError } from '../core/errors.js'
import type { Database } from '../db/database.js'
import { nextTurn, type Clock } from '../world/time/clock.js'
import { RetryingLoop } from '../world/time/retrying-loop.js'
import type { Log } from '../world/log.js'
import type { Random } from '../world/random.js'
import { applyFindings, type ApplyParts, type ReadMail } from './effects/apply-findings.js'
import { countTry, findWaitingMails, readInboundOctets, type InboundMail } from './inbound-mail-store.js'
import type { MailFinding, ParseTask, Wanted } from './reading/parser-protocol.js'
import type { ParserThread } from './reading/parser-thread.js'
import type { InboundCounters, InboundResult } from './results.js'

export interface ProcessingParts extends ApplyParts {
  readonly database: Database
  readonly clock: Clock
  readonly random: Random
  readonly log: Log
  readonly counters: InboundCounters
  /** The event log has grown. */
  readonly onAppended: () => void
}

/** One transaction's share; the API waits for it. */
const BATCH_MAILS = 50
const BATCH_OCTETS = 2_000_000
/** What a mail with reports counts for: they may be a thousand times as large unpacked. */
const REPORT_WEIGHT = BATCH_OCTETS / 2
const MOST_ENDED_THREADS = 2
/** Of a mail whose effects cannot be written though the database can. */
const MOST_FAILED_WRITES = 5
/** After trouble with the database. */
const RESTS: BackoffPolicy = { firstMs: 1_000, factor: 2, maxMs: 60_000 }

/** What is looked at of a mail, octets. The reader of returned mail looks at half a million. */
const MOST_OF_REPORTS = 16_000_000
const MOST_OF_RETURNED = 600_000
const MOST_OF_HEAD = 65_536

const UNREADABLE = {
  ended: { fault: 'the thread that read it ended, twice' },
  overdue: { fault: 'reading it took too long, twice' },
} as const satisfies Record<string, MailFinding>
const UNWRITABLE: MailFinding = { fault: 'what it brings about could not be written; see the log' }

export class ProcessingLoop {
  private readonly parts: ProcessingParts
  private readonly isSigned: boolean
  private readonly parser: ParserThread
  private readonly loop: RetryingLoop
  /** Mails that are written one by one, for the effects of one of them cannot be. */
  private singly = 0

  /** @param isSigned which mail it takes */
  constructor(parts: ProcessingParts, isSigned: boolean, parser: ParserThread) {
    this.parts = parts
    this.isSigned = isSigned
    this.parser = parser
    const { clock, random, log } = parts
    this.loop = new RetryingLoop({
      clock,
      restMs: failures => retryDelayMs(RESTS, failures, random.fraction()),
      takeTurn: () => this.takeTurn(),
      // Requests that came meanwhile go first.
      afterTurn: nextTurn,
      onFailure: (error, retryInMs) => {
        log.error('inbound mail could not be processed', { error: describeError(error), retryInMs })
      },
    })
  }

  /** A mail was stored. Cheap. */
  wake(): void {
    this.loop.wake()
  }

  /** Finishes the batch in hand; what waits is taken up at the next start. */
  async stop(): Promise<void> {
    this.loop.halt()
    // What is being read can be read again; it is not waited for.
    await this.parser.close()
    await this.loop.stop()
  }

  /** @returns whether there may be more */
  private async takeTurn(): Promise<boolean> {
    const { reader } = this.parts.database
    const limit = this.singly > 0 ? 1 : BATCH_MAILS
    const mails = withinOctets(await findWaitingMails(reader, limit, this.isSigned))
    if (mails.length === 0) {
      this.singly = 0
      return false
    }
    const wanting = mails.filter(mail => isAny(wantedOf(mail)))
    const tasks: ParseTask[] = []
    for (const mail of wanting) tasks.push(await this.taskOf(mail))
    const { findings, end } =
      tasks.length === 0 ? { findings: [], end: 'read' as const } : await this.parser.read(tasks)
    const lost = wanting[findings.length]
    const found = new Map(wanting.map((mail, index) => [mail.seq, findings[index]]))
    const read = lost === undefined ? mails : mails.slice(0, mails.indexOf(lost))
    if (read.length > 0) await this.apply(read.map(mail => ({ mail, finding: found.get(mail.seq) ?? {} })))
    if (this.loop.isStopped) return false
    if (end === 'unavailable') throw new Error('the thread that reads inbound mail does not start')
    if (end !== 'read' && lost) await this.countLost(lost, end)
    this.singly = Math.max(0, this.singly - 1)
    this.loop.succeed()
    return true
  }

  private async taskOf(mail: InboundMail): Promise<ParseTask> {
    const wanted = wantedOf(mail)
    const ofRest = wanted.returned ? MOST_OF_RETURNED : MOST_OF_HEAD
    const octets = await readInboundOctets(
      this.parts.database.reader,
      mail,
      wanted.reports ? MOST_OF_REPORTS : ofRest,
    )
    // Small buffers share memory with others; what is handed over must not.
    return { wanted, octets: new Uint8Array(octets) }
  }

  private async apply(batch: readonly ReadMail[]): Promise<void> {
    const { database, clock, onAppended, log } = this.parts
    try {
      const { results, hasEvents } = await applyFindings(database, this.parts, batch, clock.now())
      this.count(results)
      if (hasEvents) onAppended()
    } catch (error) {
      const [only] = batch
      if (batch.length > 1 || !only) {
        this.singly = batch.length
        throw error
      }
      // Where even this cannot be written, it is not the mail's fault.
      const tries = await database.write(tx => countTry(tx.db, only.mail.seq))
      if (tries < MOST_FAILED_WRITES || only.finding === UNWRITABLE) throw error
      log.error('an inbound mail cannot take effect', { mail: only.mail.seq, error: describeError(error) })
      await this.apply([{ mail: only.mail, finding: UNWRITABLE }])
    }
  }

  private async countLost(mail: InboundMail, why: keyof typeof UNREADABLE): Promise<void> {
    const { database, log } = this.parts
    const tries = await database.write(tx => countTry(tx.db, mail.seq))
    if (tries < MOST_ENDED_THREADS) return
    log.error('an inbound mail cannot be read', { mail: mail.seq })
    await this.apply([{ mail, finding: UNREADABLE[why] }])
  }

  private count(results: readonly InboundResult[]): void {
    const { counters, log } = this.parts
    for (const result of results) counters.results.set(result, (counters.results.get(result) ?? 0) + 1)
    const forged = results.filter(result => result === 'forged').length
    if (forged === 0) return
    counters.forged += forged
    log.info('inbound mail with a token that is not ours', { mails: forged })
  }
}

function wantedOf({ recipients }: InboundMail): Wanted {
  const isFor = (...purposes: string[]) => recipients.some(({ purpose }) => purposes.includes(purpose))
  return {
    returned: isFor('return_path', 'feedback'),
    reports: isFor('reports'),
    head: isFor('contact'),
  }
}

function isAny({ returned, reports, head }: Wanted): boolean {
  return returned || reports || head
}

/** The first ones that are not too large together; always one. */
function withinOctets(mails: readonly InboundMail[]): readonly InboundMail[] {
  let octets = 0
  const end = mails.findIndex((mail, index) => {
    octets += wantedOf(mail).reports ? Math.max(mail.size, REPORT_WEIGHT) : mail.size
    return index > 0 && octets > BATCH_OCTETS
  })
  return end < 0 ? mails : mails.slice(0, end)
}
