/**
 * One check of a campaign: renders its mail for everybody it would reach, a span of contacts per step, and looks at its sender and links.
 *
 * The variants of an A/B test are checked one after another, each for everybody: who would get which is not known before.
 * Called by the runner. The state in memory can be lost: the check then begins again. Steps are short, contacts are read and mails are
 * rendered in threads, at most two at a time, so that the server and other workspaces go on.
 */
import { contactsOf, findAudience, type SeqRange } from '../../audience/audience-store.js'
import { findContactsBySeq } from '../../audience/contacts/contact-store.js'
import { listMailability, type Selection } from '../../audience/segments/audience-query-store.js'
import type { ActingWorkspace } from '../../accounts/workspace-store.js'
import { footerCase } from '../../content/footer/compliance-footer.js'
import {
  FaultCounts,
  type CheckResult,
  type CheckedRecipient,
} from '../../content/rendering/check-recipients.js'
import { brandOf } from '../../content/rendering/merging.js'
import type { RenderResult } from '../../content/rendering/render-request.js'
import { AppError, describeError } from '../../core/errors.js'
import type { Sender } from '../../msa/sender.js'
import type { HttpClient } from '../../world/net/fetch.js'
import { withVariant } from '../model/ab-test.js'
import { findCampaignBySeq } from '../model/campaign-store.js'
import { findCampaignData } from '../model/letter-store.js'
import { findCampaignAudience, whoOf } from '../model/campaign-audience.js'
import { makeLetter, type Letter } from '../model/letter.js'
import { featureFindings } from './feature-findings.js'
import { unreachable } from './check-links.js'
import { senderFindings } from './check-sender.js'
import { changeCheck, type CampaignCheck } from './check-store.js'
import {
  finding,
  htmlFindings,
  linkFindings,
  recipientFinding,
  sorted,
  spamFindings,
  subjectFindings,
  type CampaignFinding,
  type FindingCode,
} from './findings.js'
import { mergeVariants } from './merge-variants.js'
import { placeFindings } from './place-findings.js'
import type { PreflightParts } from './preflight-parts.js'
import { sampleMail, type SampleOf } from './sample-mail.js'
import { askRspamd, type SpamScore } from './spam-score.js'

/** Contact numbers per step: what a thread read of so many is received in a few milliseconds. */
const SPAN = 4_000
/** Recipients per rendering in a thread: some ten milliseconds. */
const RENDERED_AT_ONCE = 250
const THREADS = 2
const PROGRESS_EVERY_MS = 1_000
const MAX_LINKS = 500
/** Opens that say in which clients an audience reads. */
const OPENS_MS = 90 * 86_400_000

/** Dead links, since the mails are not sent. They are as long as real ones. */
const TOKEN = 'x'.repeat(80)
const LINKS = {
  unsubscribeUrl: `https://unsubscribe.invalid/${TOKEN}`,
  preferencesUrl: `https://preferences.invalid/${TOKEN}`,
  viewUrl: `https://view.invalid/${TOKEN}`,
}

/** For a mail that reaches nobody. */
const NOBODY: CheckedRecipient = {
  id: '',
  email: 'nobody@example.com',
  firstName: null,
  lastName: null,
  attributes: {},
}

/** Findings for mail that cannot be sent, by the error code that sending would return. */
const REFUSALS: Readonly<Record<string, FindingCode>> = {
  template_not_found: 'template_not_found',
  missing_from_email: 'sender_missing',
  domain_invalid: 'sender_not_verified',
  not_found: 'audience_not_found',
}

interface Begun {
  readonly workspaceId: string
  readonly workspace: ActingWorkspace
  readonly letter: Letter | undefined
  readonly sender: Sender | undefined
  readonly who: Selection | undefined
  /** How many variants the mail has: one without an A/B test. */
  readonly variants: number
  /** Contacts still to be checked. */
  readonly range: SeqRange
}

export class RunningCheck {
  private readonly parts: PreflightParts
  private readonly check: CampaignCheck
  private readonly rspamdUrl: string | undefined
  private begun: Begun | undefined
  /** Whose mail rspamd judges. */
  private sample: CheckedRecipient = NOBODY
  private next = 0
  /** Of the A/B test, being checked; what was found in those before, and how many mails were rendered for them. */
  private variant = 0
  private readonly found: (readonly CampaignFinding[])[] = []
  private checkedBefore = 0
  private checked = 0
  private batches = 0
  /** The mail cannot be rendered for anybody. */
  private isRefused = false
  private largest = 0
  private html: CheckResult['html']
  /** Of the worst variant. */
  private spam: SpamScore | undefined
  private reportedAt = 0
  private counts = new FaultCounts()
  private readonly links = new Set<string>()
  private readonly findings: CampaignFinding[] = []

  /** @param rspamdUrl absent if there is none */
  constructor(parts: PreflightParts, check: CampaignCheck, rspamdUrl?: string) {
    this.parts = parts
    this.rspamdUrl = rspamdUrl
    this.check = check
  }

  /** @returns false once it has ended */
  async step(): Promise<boolean> {
    const begun = (this.begun ??= await this.begin())
    if (!begun) return false
    const { letter, who, range, workspaceId } = begun
    if (letter && who && !this.isRefused && this.next <= range.last) {
      const last = Math.min(this.next + SPAN - 1, range.last)
      const results = await this.checkSpan(letter, who, workspaceId, { first: this.next, last })
      // Once all of them are there, so that a span that failed and is repeated counts once.
      for (const [recipients, result] of results) this.take(result, recipients)
      this.next = last + 1
      return this.report()
    }
    return this.end(begun)
  }

  private async begin(): Promise<Begun | undefined> {
    const { send } = this.parts
    const { database, senders } = send
    // Of an attempt that failed.
    this.findings.length = 0
    const campaign = await findCampaignBySeq(database.reader, this.check.campaign)
    if (!campaign) return undefined
    const { workspaceId } = campaign
    const workspace = await senders.workspace(workspaceId)
    const data = await findCampaignData(database.reader, campaign.seq)
    const variants = campaign.abTest?.variants ?? []
    const said = withVariant(campaign, variants[this.variant])
    const letter = await this.orFinding(() => makeLetter(database.reader, workspace, said, data))
    const sender =
      letter &&
      (await this.orFinding(async () => {
        const sender = await senders.sender(workspace, letter.author)
        this.findings.push(...(await senderFindings(database.reader, workspace, sender, letter.author)))
        return sender
      }))
    const who = await this.orFinding(async () => whoOf(await findCampaignAudience(database.reader, campaign)))
    const audience = await findAudience(database.reader, workspaceId)
    const first = audience ? contactsOf(audience.number).first : 1
    this.next = first
    return {
      workspaceId,
      workspace,
      letter,
      sender,
      who,
      variants: Math.max(1, variants.length),
      range: { first, last: audience ? first + audience.lastContact : 0 },
    }
  }

  private async orFinding<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work()
    } catch (error) {
      const code = error instanceof AppError ? REFUSALS[error.code] : undefined
      if (code === undefined) throw error
      this.findings.push(finding(code, (error as AppError).message))
      return undefined
    }
  }

  private async checkSpan(
    letter: Letter,
    who: Selection,
    workspaceId: string,
    range: SeqRange,
  ): Promise<readonly [recipients: number, RenderResult][]> {
    const { database, clock } = this.parts.send
    const contacts = await listMailability(database.slowReader, who, { workspaceId, now: clock.now() }, range)
    const mailable = contacts.filter(({ mailability }) => mailability === 'mailable').map(({ seq }) => seq)
    const results: [number, RenderResult][] = []
    let next = 0
    const line = async () => {
      while (next < mailable.length) {
        const seqs = mailable.slice(next, next + RENDERED_AT_ONCE)
        next += seqs.length
        const recipients = (await findContactsBySeq(database.slowReader, seqs)).map(
          ({ id, email, firstName, lastName, attributes }) => ({
            id,
            email,
            firstName,
            lastName,
            attributes,
          }),
        )
        if (this.sample === NOBODY) this.sample = recipients[0] ?? NOBODY
        results.push([recipients.length, await this.render(letter, workspaceId, recipients)])
      }
    }
    await Promise.all(Array.from({ length: THREADS }, line))
    return results
  }

  private async render(
    letter: Letter,
    workspaceId: string,
    recipients: readonly CheckedRecipient[],
  ): Promise<RenderResult> {
    const { renderQueue, send } = this.parts
    const { subject, html, merging, trackClicks } = letter
    const brand = brandOf(await send.senders.workspace(workspaceId))
    const request = {
      kind: 'check' as const,
      source: { subject, html },
      merging: { brand, hasFooter: true, ...(merging?.data ? { data: merging.data } : {}) },
      tracksClicks: trackClicks,
      recipients,
      date: send.clock.now(),
      links: LINKS,
      inspects: this.html === undefined,
    }
    const key = `check ${this.check.id} ${this.batches++}`
    return renderQueue.render({ key, workspaceId, load: () => Promise.resolve(request) })
  }

  private take(result: RenderResult, recipients: number): void {
    if (result.kind === 'refused' && !this.isRefused) {
      this.findings.push(finding('not_renderable', result.message))
      this.isRefused = true
    }
    if (result.kind !== 'checked') return
    for (const fault of result.faults) this.counts.merge(fault)
    for (const link of result.links) if (this.links.size < MAX_LINKS) this.links.add(link)
    this.largest = Math.max(this.largest, result.largest)
    this.html ??= result.html
    this.checked += recipients
  }

  private async report(): Promise<boolean> {
    const { clock, database } = this.parts.send
    if (clock.monotonic() - this.reportedAt < PROGRESS_EVERY_MS) return true
    this.reportedAt = clock.monotonic()
    const { check } = this
    const checked = Math.floor((this.checkedBefore + this.checked) / (this.begun?.variants ?? 1))
    return database.write(tx => changeCheck(tx.db, check, { checked, total: Math.max(check.total, checked) }))
  }

  /** @returns whether there is another variant to check */
  private async end({ workspace, workspaceId, letter, sender, who, variants }: Begun): Promise<boolean> {
    const { database, clock } = this.parts.send
    const isReached = this.checked > 0
    if (letter && !isReached && !this.isRefused)
      this.take(await this.render(letter, workspaceId, [NOBODY]), 0)
    const findings = [...this.findings]
    let spam: SpamScore | undefined
    if (letter) {
      if (who && !isReached && !this.isRefused)
        findings.push(finding('no_recipients', 'The audience has nobody who can be mailed'))
      const { http } = this.parts.outgoingCalls(workspace.allowPrivateWebhooks)
      const recipient = this.sample
      if (sender && !this.isRefused)
        spam = await this.askForScore(
          http,
          { id: `${this.check.id}-${this.variant}`, workspace, workspaceId, letter, sender, recipient },
          findings,
        )
      findings.push(
        ...(isReached ? this.counts.all().map(recipientFinding) : []),
        ...subjectFindings(letter.subject),
        ...linkFindings([...this.links]),
        ...(this.html ? htmlFindings(this.html) : []),
        ...featureFindings(
          this.html?.features ?? [],
          await this.parts.findClientOpens(workspaceId, clock.now() - OPENS_MS),
        ),
        ...(footerCase(letter.html, brandOf(workspace)) === 'added'
          ? [
              finding(
                'unsubscribe_link_added',
                'The mail has no unsubscribe link of its own; a footer with one is added',
              ),
            ]
          : []),
        ...(spam ? spamFindings(spam) : []),
        ...(await unreachable(http, [...this.links], [...(this.html?.imageUrls ?? [])])),
      )
    }
    const id = `${this.check.id}-${this.variant}`
    this.found[this.variant] = letter
      ? await placeFindings(
          this.parts,
          { id, workspaceId, workspace, letter, links: LINKS, recipient: this.sample },
          findings,
        )
      : findings
    if (spam && spam.score >= (this.spam?.score ?? -Infinity)) this.spam = spam
    if (this.variant + 1 < variants) {
      this.beginNext()
      return true
    }
    const { checked, largest } = this
    await database.write(async tx => {
      const change = {
        status: 'completed' as const,
        checked,
        total: checked,
        findings: sorted(mergeVariants(this.found)),
        largest,
        spam: this.spam,
        finishedAt: clock.now(),
      }
      await changeCheck(tx.db, this.check, change)
    })
    return false
  }

  private beginNext(): void {
    this.variant += 1
    this.checkedBefore += this.checked
    this.checked = 0
    this.isRefused = false
    this.html = undefined
    this.counts = new FaultCounts()
    this.links.clear()
    this.begun = undefined
  }

  /** Rspamd's view of one recipient's mail. @param findings gets why there is none */
  private async askForScore(
    http: HttpClient,
    of: SampleOf,
    findings: CampaignFinding[],
  ): Promise<SpamScore | undefined> {
    if (this.rspamdUrl === undefined) return undefined
    try {
      const { message, envelope } = await sampleMail(this.parts, of)
      return await askRspamd(http, this.rspamdUrl, message, envelope)
    } catch (error) {
      this.parts.log.warn('spam score failed', { check: this.check.id, error: describeError(error) })
      findings.push(finding('spam_not_checked', 'rspamd could not be asked for a spam score'))
      return undefined
    }
  }
}
