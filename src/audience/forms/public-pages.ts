/**
 * Public pages of forms.
 *
 * `/f/<id>` shows the form and takes submissions from that page, from other sites, or as JSON. Rate-limited per address and per form. If the
 * honeypot field is filled in, nothing is stored and the visitor is asked to submit again: people whose browser filled it in do, most bots do
 * not. The response never reveals who is already a contact. Browsers are redirected only to the form's own `redirect_url`. Other sites may
 * send JSON and read the response (CORS), which reveals only the form.
 *
 * `/s/<token>` is the link of a confirmation mail. Link scanners follow every link in a mail, so GET only shows a button and POST confirms.
 * Confirming is idempotent. The token contains its creation time and expires after some days.
 *
 * Standards: RFC 9110 §15.4.4 (303), Fetch Standard §3.2.
 * Fails: with a page, or with an API error for JSON; `unavailable`, and logged, if the confirmation mail cannot be sent.
 */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { noticePage } from '../../http/public/document.js'
import { html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { PublicAnswer, PublicPost, PublicRoute } from '../../http/public/public-route.js'
import { LINK_PATHS } from '../../mail/links/links.js'
import { readConfirmationToken } from '../../mail/links/subscriber-link.js'
import { FormAllowance } from './form-allowance.js'
import { type Fault, faultText, formContent, HONEYPOT, readFilled, type Shown } from './form-html.js'
import { findAnyForm, findOptIn, type OptIn } from './form-store.js'
import type { Form, FormOwner, FormParts } from './form.js'
import { confirmOptIn, OPT_IN_MS, submitForm, type Visit } from './submit-form.js'

const FORM_PATH = '/f/:id'

export function formPages(parts: FormParts): PublicRoute[] {
  const allowance = new FormAllowance(parts.clock, parts.openWindow)
  return [
    {
      method: 'GET',
      path: FORM_PATH,
      isLimited: true,
      isOpenToOrigins: true,
      async handle({ params, texts }) {
        const found = await findOpenForm(parts, params['id'] ?? '')
        if (!found) throw new AppError('not_found', 'no such form')
        if (found.isDeleted) return gone(texts, found.owner)
        return formAnswer({ form: found.form, texts }, found.owner)
      },
    },
    {
      method: 'POST',
      path: FORM_PATH,
      isLimited: true,
      isOpenToOrigins: true,
      async handle(request) {
        const { params, texts, language, form: fields, visitor, wantsJson } = request
        const found = await findOpenForm(parts, params['id'] ?? '')
        if (!found) throw new AppError('not_found', 'no such form')
        if (found.isDeleted) {
          if (wantsJson) throw new AppError('not_found', 'this form is closed')
          return gone(texts, found.owner)
        }
        const { form, owner } = found
        await allowance.takeSubmission(form.id, visitor.address)
        const filled = readFilled(form.fields, fields)
        if ('faults' in filled) return refused(request, form, owner, filled.faults)
        if ((fields.get(HONEYPOT) ?? '') !== '') return honeypotFilled(request, form, owner)
        const { hourlyLimit, dailyLimit } = owner
        const asking = { form, hourlyLimit, dailyLimit, address: visitor.address }
        await allowance.prepareConfirmation(asking)
        const mayAsk = (email: string) => allowance.takeConfirmation(asking, email)
        const visit: Visit = { form, owner, texts, language, mayAsk }
        const result = await submitLoggingFaults(parts, visit, filled)
        return thanks(request, form, owner, result, filled.email)
      },
    },
  ]
}

interface Found {
  readonly form: Form
  readonly owner: FormOwner
  readonly isDeleted: boolean
}

async function findOpenForm(
  { database, findPublicSender }: FormParts,
  id: string,
): Promise<Found | undefined> {
  const found = isUuid(id) ? await findAnyForm(database.reader, id.toLowerCase()) : undefined
  const owner = found && (await findPublicSender(database.reader, found.form.workspaceId))
  return found && owner && { ...found, owner }
}

function formAnswer(shown: Shown, owner: FormOwner, status = 200): PublicAnswer {
  const { form } = shown
  return {
    status,
    page: {
      title: form.title ?? form.name,
      content: formContent(shown),
      sender: owner.sender,
      // CSP form-action also applies to redirects after a submission.
      formTargets: form.redirectUrl === null ? [] : [new URL(form.redirectUrl).origin],
    },
  }
}

export function gone({ form }: PageTexts, owner: FormOwner): PublicAnswer {
  return { page: noticePage(form.gone, owner.sender), status: 410 }
}

/** Errors in sending the confirmation mail are logged for the operator and hidden from the visitor. */
async function submitLoggingFaults(
  { log, ...parts }: FormParts,
  visit: Visit,
  filled: Parameters<typeof submitForm>[2],
): Promise<'pending' | 'subscribed'> {
  try {
    return await submitForm({ log, ...parts }, visit, filled)
  } catch (error) {
    if (!(error instanceof AppError) || error.code === 'unavailable' || error.code === 'rate_limited')
      throw error
    log.warn('form submission failed', { formId: visit.form.id, error: error.message })
    throw new AppError('unavailable', 'this form is temporarily unavailable; try again later', {
      cause: error,
    })
  }
}

function refused(
  { wantsJson, texts, form: filled }: PublicPost,
  form: Form,
  owner: FormOwner,
  faults: readonly Fault[],
): PublicAnswer {
  const [first] = faults
  if (!wantsJson || !first) return formAnswer({ form, texts, filled, faults }, owner, 400)
  const label = form.fields.find(({ name }) => name === first.name)?.label ?? texts.form.email
  throw new AppError('validation_error', faultText(first, label, texts), { path: first.name })
}

function honeypotFilled(
  { wantsJson, texts, form: filled }: PublicPost,
  form: Form,
  owner: FormOwner,
): PublicAnswer {
  if (wantsJson) throw new AppError('validation_error', `${HONEYPOT} must be empty`, { path: HONEYPOT })
  return formAnswer({ form, texts, filled, isToSendAgain: true }, owner, 400)
}

function thanks(
  { wantsJson, texts }: PublicPost,
  { redirectUrl }: Form,
  owner: FormOwner,
  result: 'pending' | 'subscribed',
  email: string,
): PublicAnswer {
  if (wantsJson)
    return {
      json: {
        data: {
          success: true,
          status: result === 'pending' ? 'confirmation_sent' : 'subscribed',
          redirect_url: redirectUrl,
        },
      },
    }
  if (redirectUrl !== null) return { redirect: redirectUrl, status: 303 }
  const notice = result === 'pending' ? texts.form.checkInbox(email) : texts.form.thanks
  return { page: noticePage(notice, owner.sender) }
}

const CONFIRM_PATH = `${LINK_PATHS.confirm}:token`

export function optInPages(parts: FormParts): PublicRoute[] {
  return [
    {
      method: 'GET',
      path: CONFIRM_PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const found = await findWaiting(parts, params['token'] ?? '', texts)
        if ('answer' in found) return found.answer
        return found.optIn.isConfirmed ? done(texts, found) : asking(texts, found)
      },
    },
    {
      method: 'POST',
      path: CONFIRM_PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const found = await findWaiting(parts, params['token'] ?? '', texts)
        if ('answer' in found) return found.answer
        await confirmOptIn(parts, found.form, found.owner, found.optIn)
        return done(texts, found)
      },
    },
  ]
}

interface Waiting {
  readonly optIn: OptIn & { readonly isConfirmed: boolean }
  readonly form: Form
  readonly owner: FormOwner
}

/** The pending opt-in, or the page to show instead. */
async function findWaiting(
  { database, clock, linkKeys, findPublicSender }: FormParts,
  text: string,
  texts: PageTexts,
): Promise<Waiting | { readonly answer: PublicAnswer }> {
  const token = readConfirmationToken(linkKeys, text)
  const owner = token && (await findPublicSender(database.reader, token.workspaceId))
  if (!token || !owner) return { answer: { page: noticePage(texts.badLink), status: 404 } }
  const optIn = await findOptIn(database.reader, token.subjectId)
  const found = optIn && (await findAnyForm(database.reader, optIn.formId))
  const isOver = clock.now() > token.madeAt + OPT_IN_MS
  if (found?.isDeleted) return { answer: gone(texts, owner) }
  if (!optIn || !found || isOver) return { answer: expired(texts, owner, found?.form) }
  return { optIn, form: found.form, owner }
}

function asking({ optIn: said }: PageTexts, { optIn, owner }: Waiting): PublicAnswer {
  const { sender } = owner
  const content = html`<p>${said.question(optIn.email, sender.name)}</p>
    <form method="post"><button>${said.button}</button></form>
    <p class="soft">${said.ignore}</p>`
  return { page: { title: said.title, content, sender } }
}

function done({ optIn: said }: PageTexts, { optIn, owner }: Waiting): PublicAnswer {
  const { sender } = owner
  return { page: noticePage(said.done(optIn.email, sender.name), sender) }
}

function expired({ optIn, form }: PageTexts, owner: FormOwner, of?: Form): PublicAnswer {
  const toForm = of && html`<p><a href="../f/${of.id}">${form.toForm}</a></p>`
  return { page: noticePage(optIn.expired, owner.sender, toForm), status: 410 }
}
