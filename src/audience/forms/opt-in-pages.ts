/**
 * `/s/<token>`: the link of an opt-in mail. GET shows a button, POST confirms.
 *
 * Link scanners follow every link in a mail, so a GET must not confirm. Confirming is idempotent. The token expires after some days and
 * contains its own creation time.
 * Fails: 404 page for an invalid token, 410 page with a link to the form for an expired one.
 */
import { noticePage } from '../../http/public/document.js'
import { html } from '../../http/public/html.js'
import type { PageTexts } from '../../http/public/languages/page-texts.js'
import type { PublicAnswer, PublicRoute } from '../../http/public/public-route.js'
import { LINK_PATHS } from '../../mail/links/links.js'
import { readConfirmationToken } from '../../mail/links/subscriber-link.js'
import { gone } from './form-pages.js'
import type { Form } from './form.js'
import type { FormOwner, FormParts } from './form-parts.js'
import { findAnyForm } from './form-store.js'
import { findOptIn, type OptIn } from './opt-in-store.js'
import { confirm, OPT_IN_MS } from './take-form.js'

const PATH = `${LINK_PATHS.confirm}:token`

export function optInPages(parts: FormParts): PublicRoute[] {
  return [
    {
      method: 'GET',
      path: PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const found = await findWaiting(parts, params['token'] ?? '', texts)
        if ('answer' in found) return found.answer
        return found.optIn.isConfirmed ? done(texts, found) : asking(texts, found)
      },
    },
    {
      method: 'POST',
      path: PATH,
      isLimited: true,
      async handle({ params, texts }) {
        const found = await findWaiting(parts, params['token'] ?? '', texts)
        if ('answer' in found) return found.answer
        await confirm(parts, found.form, found.owner, found.optIn)
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
