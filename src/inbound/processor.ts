/**
 * Processes stored inbound mail in two loops: one for signed mail, one for all other, so that bounces never wait behind
 * what anyone can send.
 *
 * Each loop has its own parser thread and works batch by batch in order of arrival; here only rows are read and
 * written, a few milliseconds at a time. A mail that ends the thread twice, or takes too long twice, is marked `failed`
 * and kept. Database errors are logged and retried. Woken by the receiver's commits, those of other nodes as well, and by mail that is
 * marked for reprocessing.
 */
import type { Services } from '../db/services.js'
import type { SpawnThread } from '../world/threads.js'
import { ParserThread } from './reading/parser-thread.js'
import type { InboundCounters, InboundResult } from './results.js'
import { describeError } from '../core/errors.js'
import { AT_ONCE, WHEN_WOKEN, Worker } from '../world/time/worker.js'
import { applyFindings, type ApplyParts, type ReadMail } from './effects/apply-findings.js'
import { countAttempt, findWaitingMails, readInboundOctets, type InboundMail } from './inbound-mail-store.js'
import type { MailFinding, ParseTask, Wanted } from './parser-protocol.js'

export interface ProcessorParts extends ProcessingParts {
  readonly spawn: SpawnThread
}

export class InboundProcessor {
  private readonly parts: ProcessorParts
  private readonly signed: ProcessingLoop
  private readonly unsigned: ProcessingLoop

  constructor(parts: ProcessorParts) {
    this.parts = parts
    this.signed = new ProcessingLoop(parts, true, new ParserThread(parts))
    this.unsigned = new ProcessingLoop(parts, false, new ParserThread(parts))
  }

  get counters(): InboundCounters {
    return this.parts.counters
  }

  /** Also after `stop` has resolved. */
  start(): void {
    this.signed.reopen()
    this.unsigned.reopen()
    this.wake(true)
    this.wake(false)
  }

  /** @param isSigned whether every recipient of the stored mail is a signed address */
  wake(isSigned: boolean): void {
    if (isSigned) this.signed.wake()
    else this.unsigned.wake()
  }

  /** Finishes the current batches; the rest is processed after the next start. */
  async stop(): Promise<void> {
    await Promise.all([this.signed.stop(), this.unsigned.stop()])
  }
}

export interface ProcessingParts extends ApplyParts, Pick<Services, 'database' | 'clock' | 'random' | 'log'> {
  readonly counters: InboundCounters
  /** Called after events were appended and committed. */
  readonly onAppended: () => void
}

/** Size of a transaction, which API requests may have to wait for. */
const BATCH_MAILS = 50
const BATCH_OCTETS = 2_000_000
/** Weight of a mail with reports, which may be a thousand times larger unpacked. */
const REPORT_WEIGHT = BATCH_OCTETS / 2
const MAX_THREAD_EXITS = 2
/** For a mail whose effects cannot be written although the database works. */
const MAX_FAILED_WRITES = 5

/** Bytes parsed of a mail. The parser of returned mail reads at most half a million. */
const MAX_REPORT_OCTETS = 16_000_000
const MAX_RETURNED_OCTETS = 600_000
const MAX_HEAD_OCTETS = 65_536

const UNREADABLE = {
  ended: { fault: 'parser thread ended twice' },
  overdue: { fault: 'parsing timed out twice' },
} as const satisfies Record<string, MailFinding>
const UNWRITABLE: MailFinding = { fault: 'effects could not be written; see the log' }

export class ProcessingLoop {
  private readonly parts: ProcessingParts
  private readonly isSigned: boolean
  private readonly parser: ParserThread
  private readonly worker: Worker
  /** Mails left to write one by one, because a batch could not be written. */
  private singleMails = 0

  constructor(parts: ProcessingParts, isSigned: boolean, parser: ParserThread) {
    this.parts = parts
    this.isSigned = isSigned
    this.parser = parser
    this.worker = new Worker({
      ...parts,
      failure: 'inbound processing failed, retrying',
      runPiece: () => this.processBatch(),
      version: () => parts.database.changes.version('inbound'),
    })
  }

  reopen(): void {
    this.parser.reopen()
    this.worker.reopen()
  }

  wake(): void {
    this.worker.wake()
    this.worker.start()
  }

  async stop(): Promise<void> {
    const stopped = this.worker.stop()
    // Mail being parsed is parsed again after the next start.
    await this.parser.close()
    await stopped
  }

  private async processBatch(): Promise<number> {
    const { reader } = this.parts.database
    const limit = this.singleMails > 0 ? 1 : BATCH_MAILS
    const mails = takeBatch(await findWaitingMails(reader, limit, this.isSigned))
    if (mails.length === 0) {
      this.singleMails = 0
      return WHEN_WOKEN
    }
    const wanting = mails.filter(mail => needsParsing(wantedOf(mail)))
    const tasks: ParseTask[] = []
    for (const mail of wanting) tasks.push(await this.taskOf(mail))
    const { findings, end } =
      tasks.length === 0 ? { findings: [], end: 'read' as const } : await this.parser.read(tasks)
    const lost = wanting[findings.length]
    const found = new Map(wanting.map((mail, index) => [mail.seq, findings[index]]))
    const read = lost === undefined ? mails : mails.slice(0, mails.indexOf(lost))
    if (read.length > 0) await this.apply(read.map(mail => ({ mail, finding: found.get(mail.seq) ?? {} })))
    if (this.worker.isStopped) return WHEN_WOKEN
    if (end === 'unavailable') throw new Error('inbound parser thread does not start')
    if (end !== 'read' && lost) await this.recordLost(lost, end)
    this.singleMails = Math.max(0, this.singleMails - 1)
    this.worker.resetBackoff()
    return AT_ONCE
  }

  private async taskOf(mail: InboundMail): Promise<ParseTask> {
    const wanted = wantedOf(mail)
    const ofRest = wanted.returned ? MAX_RETURNED_OCTETS : MAX_HEAD_OCTETS
    const octets = await readInboundOctets(
      this.parts.database.reader,
      mail,
      wanted.reports ? MAX_REPORT_OCTETS : ofRest,
    )
    // Small buffers share a pool, but the transferred one must not.
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
        this.singleMails = batch.length
        throw error
      }
      // If even this cannot be written, the mail is not the cause.
      const tries = await database.write(tx => countAttempt(tx.db, only.mail.seq))
      if (tries < MAX_FAILED_WRITES || only.finding === UNWRITABLE) throw error
      log.error('inbound mail effects not written', { mail: only.mail.seq, error: describeError(error) })
      await this.apply([{ mail: only.mail, finding: UNWRITABLE }])
    }
  }

  private async recordLost(mail: InboundMail, why: keyof typeof UNREADABLE): Promise<void> {
    const { database, log } = this.parts
    const tries = await database.write(tx => countAttempt(tx.db, mail.seq))
    if (tries < MAX_THREAD_EXITS) return
    log.error('inbound mail not parsed', { mail: mail.seq })
    await this.apply([{ mail, finding: UNREADABLE[why] }])
  }

  private count(results: readonly InboundResult[]): void {
    const { counters, log } = this.parts
    for (const result of results) counters.results.set(result, (counters.results.get(result) ?? 0) + 1)
    const forged = results.filter(result => result === 'forged').length
    if (forged === 0) return
    counters.forged += forged
    log.info('forged inbound mail ignored', { mails: forged })
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

function needsParsing({ returned, reports, head }: Wanted): boolean {
  return returned || reports || head
}

/** The first mails within the batch size; at least one. */
function takeBatch(mails: readonly InboundMail[]): readonly InboundMail[] {
  let octets = 0
  const end = mails.findIndex((mail, index) => {
    octets += wantedOf(mail).reports ? Math.max(mail.size, REPORT_WEIGHT) : mail.size
    return index > 0 && octets > BATCH_OCTETS
  })
  return end < 0 ? mails : mails.slice(0, end)
}
