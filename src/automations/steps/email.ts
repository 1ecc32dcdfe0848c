/**
 * The step type `email`: sends the contact a template as marketing mail.
 *
 * Contacts that are unsubscribed or suppressed are skipped. In a sandbox the outcome is simulated. Merge tags are filled from the run's
 * trigger data first, then from the contact.
 */
import { createHash } from 'node:crypto'
import { refusal } from '../../audience/checks.js'
import { findActingWorkspace, type Workspace } from '../../accounts/workspace-store.js'
import { escapeHtml } from '../../core/escape-html.js'
import { MergeText, validText } from '../../content/merge/merge-text.js'
import { prepareContent } from '../../content/preparation/prepare-content.js'
import { rendersEmpty } from '../../content/rendering/mail-plan.js'
import { brandOf } from '../../content/rendering/merging.js'
import { findAskedTemplate } from '../../content/templates/asked-template.js'
import { AppError } from '../../core/errors.js'
import { given } from '../../core/given.js'
import { hasHeaderBreak } from '../../mail/mime/write-header-field.js'
import type { Submission, SubmissionBatch, SubmittedContent } from '../../msa/mail-submission.js'
import { readSubject } from '../../msa/rest/content-fields.js'
import { withWorkspaceSender } from '../../msa/rest/address-fields.js'
import type { Author } from '../../msa/sender.js'
import { submitAll } from '../../msa/submit.js'
import type { Step } from '../flows/automation.js'
import { checked, reference, text, type ConfigOf } from './config-fields.js'
import { valuesFor } from './merged-text.js'
import { findStepContent, saveStepContent } from './step-content-store.js'
import {
  StepError,
  type StepContext,
  type StepOutcome,
  type StepType,
  type StepExecution,
} from './step-type.js'
import { missing, unknown, type FlowFault } from '../flows/flow-fault.js'

/** A content gets new recipients for this long, then is stored again so that retention can delete the old one. */
const CONTENT_REUSE_MS = 3_600_000

const MAX_SUBJECT = 998

const fields = {
  templateId: reference(),
  subject: checked(text(MAX_SUBJECT), (subject, path) => {
    if (hasHeaderBreak(subject)) throw refusal(path, 'subject contains line breaks or control characters')
    validText(subject, 'subject', path)
  }),
  previewText: checked(text(500), (preview, path) => {
    validText(preview, 'html', path)
  }),
}

type EmailConfig = ConfigOf<typeof fields>

const NO_FIELDS = { fromAddress: undefined, name: undefined, replyTo: undefined }

export const email: StepType = {
  name: 'email',
  fields,
  async findFault(config, { db, parts, automation }) {
    const { templateId, subject } = config as EmailConfig
    if (templateId === null) return missing('templateId')
    if (subject.trim() === '') return missing('subject')
    const workspace = await findActingWorkspace(db, automation.workspaceId)
    if (!workspace) return undefined
    try {
      await findAskedTemplate(db, workspace, templateId)
      await parts.send.senders.check(db, workspace, senderOf(workspace))
      return undefined
    } catch (error) {
      if (error instanceof AppError) return faultOf(error)
      throw error
    }
  },
  async prepare(context) {
    const mail = await cachedMail(context)
    context.parts.database.storage.requireRoom()
    return execution => send(execution, mail)
  },
}

/** Mail of automations is from the workspace's default sender. @throws AppError missing_from_email */
function senderOf(workspace: Workspace): Author {
  return withWorkspaceSender(NO_FIELDS, workspace)
}

/** @throws what is no fault of the step or its workspace */
function faultOf(error: AppError): FlowFault {
  switch (error.code) {
    case 'template_not_found':
      return unknown('templateId', 'a template')
    case 'missing_from_email':
      return {
        reason: 'no_sender',
        field: 'templateId',
        text: 'has no sender: the workspace has no default_from_email',
      }
    case 'domain_invalid':
    case 'validation_error':
      return {
        reason: 'sender_not_verified',
        field: 'templateId',
        text: `has no valid sender: ${error.message}`,
      }
    default:
      throw error
  }
}

interface StepMail {
  readonly workspace: SubmissionBatch['workspace']
  /** Rendered for each contact. */
  readonly subject: MergeText
  readonly content: Omit<SubmittedContent, 'id'>
  readonly fingerprint: string
}

/** Keyed by the step object, which all runs of a batch share. */
const mails = new WeakMap<Step, Promise<StepMail>>()

function cachedMail(context: StepContext): Promise<StepMail> {
  const cached = mails.get(context.step)
  if (cached) return cached
  const mail = buildMail(context)
  mails.set(context.step, mail)
  return mail
}

/** @throws AppError template_not_found, missing_from_email, domain_invalid */
async function buildMail({ parts, automation, step }: StepContext): Promise<StepMail> {
  const { senders } = parts.send
  const { templateId, subject: written, previewText } = step.config as EmailConfig
  const workspace = await senders.workspace(automation.workspaceId)
  const template = await findAskedTemplate(
    parts.database.reader,
    workspace,
    templateId ?? undefined,
    'templateId',
  )
  if (!template) throw new StepError('the step has no templateId', {})
  const subject = new MergeText(readSubject(written), 'subject')
  const html = new MergeText(withPreview(template.html.source, previewText), 'html')
  const { merging, trackOpens, trackClicks, ...source } = await prepareContent(workspace, { subject, html })
  const sender = await senders.sender(workspace, senderOf(workspace))
  const content = {
    ...sender,
    ...source,
    trackOpens,
    trackClicks,
    templateId: template.id,
    automationId: automation.id,
    ...given({ merging }),
  }
  const fingerprint = createHash('sha256').update(JSON.stringify(content)).digest('base64')
  return { workspace, subject, content, fingerprint }
}

/** Inserts the preview text that mail clients show beside the subject, hidden in the message itself. */
function withPreview(html: string, preview: string): string {
  if (preview.trim() === '') return html
  const block = `<div style="display:none;max-height:0;overflow:hidden;mso-hide:all">${escapeBetweenTags(preview)}</div>`
  const body = /<body\b[^>]*>/i.exec(html)
  const at = body ? body.index + body[0].length : 0
  return html.slice(0, at) + block + html.slice(at)
}

function escapeBetweenTags(text: string): string {
  let escaped = ''
  let at = 0
  for (;;) {
    const open = text.indexOf('{{', at)
    const close = open < 0 ? -1 : text.indexOf('}}', open)
    if (close < 0) return escaped + escapeHtml(text.slice(at))
    escaped += escapeHtml(text.slice(at, open)) + text.slice(open, close + 2)
    at = close + 2
  }
}

async function send(execution: StepExecution, mail: StepMail): Promise<StepOutcome> {
  const { parts, tx, run, contact, now } = execution
  if (!contact.subscribed) return { kind: 'done', isSkipped: true, detail: { reason: 'unsubscribed' } }
  if (rendersEmpty(mail.subject, brandOf(mail.workspace), valuesFor(run, contact)))
    return { kind: 'done', isSkipped: true, detail: { reason: 'empty_subject' } }
  const [[recipient] = []] = await submitAll(
    tx,
    parts.send,
    {
      workspace: mail.workspace,
      isSandbox: run.isSandbox,
      submissions: [await submissionOf(execution, mail)],
    },
    now,
  )
  if (!recipient) throw new Error('submit created no message')
  const { messageId, skip } = recipient
  const detail = { message_id: messageId, to: contact.email }
  return skip === null
    ? { kind: 'done', detail, messageId }
    : { kind: 'done', isSkipped: true, detail: { ...detail, reason: skip } }
}

async function submissionOf(
  { parts, tx, step, run, contact, now }: StepExecution,
  mail: StepMail,
): Promise<Submission> {
  const { content, fingerprint } = mail
  const data =
    Object.keys(run.triggerData).length === 0 ? undefined : new Map([[contact.email, run.triggerData]])
  const to = [contact.email]
  const stored = await findStepContent(tx.db, step.seq, fingerprint, now - CONTENT_REUSE_MS)
  if (stored !== undefined)
    return { content: { ...content, id: stored }, to, isContentStored: true, ...given({ data }) }
  const id = parts.newId()
  await saveStepContent(tx.db, step.seq, id, fingerprint, now)
  return { content: { ...content, id }, to, ...given({ data }) }
}
