/**
 * `/f/<id>`: a form's page, and the target of its submissions from that page, from other sites, or as JSON.
 *
 * Public, so rate-limited per address and per form. If the honeypot field is filled in, nothing is stored and the visitor is asked to submit
 * again: people whose browser filled it in do, most bots do not. The response never reveals who is already a contact. Browsers are
 * redirected only to the form's own `redirect_url`. Other sites may send JSON and read the response (CORS), which reveals only the form.
 * Standards: RFC 9110 §15.4.4 (303), Fetch Standard §3.2.
 * Fails: with a page, or with an API error for JSON; `unavailable`, and logged, if the confirmation mail cannot be sent.
 */
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { noticePage } from '../../http/public/document.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { PublicAnswer, PublicPost, PublicRoute } from '../../http/public/public-route.js'
import type { Form } from './form.js'
import { FormAllowance } from './form-allowance.js'
import { formContent, faultText, type Shown } from './form-page.js'
import type { FormOwner, FormParts } from './form-parts.js'
import { findAnyForm } from './form-store.js'
import { HONEYPOT, readFilled, type Fault } from './form-values.js'
import { takeFilled, type Visit } from './take-form.js'

const PATH = '/f/:id'

export function formPages(parts: FormParts): PublicRoute[] {
  const allowance = new FormAllowance(parts.clock)
  return [
    {
      method: 'GET',
      path: PATH,
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
      path: PATH,
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
        allowance.takeSubmission(form.id, visitor.address)
        const filled = readFilled(form.fields, fields)
        if ('faults' in filled) return refused(request, form, owner, filled.faults)
        if ((fields.get(HONEYPOT) ?? '') !== '') return toSendAgain(request, form, owner)
        const mayAsk = (email: string) => allowance.takeConfirmation(form, visitor.address, email)
        const visit: Visit = { form, owner, texts, language, mayAsk }
        const result = await take(parts, visit, filled)
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
async function take(
  { log, ...parts }: FormParts,
  visit: Visit,
  filled: Parameters<typeof takeFilled>[2],
): Promise<'waits' | 'taken'> {
  try {
    return await takeFilled({ log, ...parts }, visit, filled)
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

function toSendAgain(
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
  result: 'waits' | 'taken',
  email: string,
): PublicAnswer {
  if (wantsJson)
    return {
      json: {
        data: {
          success: true,
          status: result === 'waits' ? 'confirmation_sent' : 'subscribed',
          redirect_url: redirectUrl,
        },
      },
    }
  if (redirectUrl !== null) return { redirect: redirectUrl, status: 303 }
  const notice = result === 'waits' ? texts.form.checkInbox(email) : texts.form.thanks
  return { page: noticePage(notice, owner.sender) }
}
