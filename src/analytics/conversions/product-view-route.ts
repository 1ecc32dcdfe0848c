/** `POST /track/product-view`: a shop reports that a contact viewed a product. */
import Type from 'typebox'
import { AppError } from '../../core/errors.js'
import type { NewId } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Database } from '../../db/database.js'
import { appendEvents } from '../../events/store.js'
import { Id, Moment } from '../../http/answer/answer-fields.js'
import { route, type Route } from '../../http/route.js'
import { parseAddress } from '../../mail/address.js'
import type { Clock } from '../../world/time/clock.js'
import type { FindContact } from './contacts.js'
import { insertProductView, type ProductView } from './product-view-store.js'
import { checkCurrency, checkMetadata, Currency, Metadata, Money } from './shop-fields.js'

export interface ProductViewParts {
  readonly database: Database
  readonly clock: Clock
  readonly newId: NewId
  readonly findContact: FindContact
  /** Events were appended to the log. */
  readonly onEvents: () => void
}

declare module '../../events/event.js' {
  interface ContactEvents {
    'product.viewed': ContactEventOf<
      'product.viewed',
      { readonly contactId: string; readonly productId: string }
    >
  }
}

const Url = (description: string) => Type.String({ minLength: 1, maxLength: 2_048, description })

const product = {
  product_name: Type.Optional(Type.String({ maxLength: 500 })),
  product_url: Type.Optional(Url('URL of the product page, http or https.')),
  image_url: Type.Optional(Url('URL of the product image, http or https.')),
  price: Type.Optional(Money('Price in `currency`.')),
  currency: Type.Optional(Currency),
  category: Type.Optional(Type.String({ maxLength: 500 })),
  metadata: Type.Optional(Metadata),
}

const ProductId = Type.String({ minLength: 1, maxLength: 255, description: "The shop's product id." })

export function productViewRoute(parts: ProductViewParts): Route {
  const { database, clock, newId, findContact, onEvents } = parts
  return route({
    method: 'POST',
    path: '/track/product-view',
    access: 'tracking:write',
    operationId: 'trackProductView',
    chapter: 'Conversions',
    summary: 'Record a product view.',
    body: Type.Object(
      {
        contact_email: Type.String({ minLength: 1, maxLength: 320, shownFormat: 'email' }),
        product_id: ProductId,
        ...product,
      },
      { additionalProperties: false, title: 'NewProductView' },
    ),
    response: Type.Object(
      {
        id: Id(),
        contact_id: Id(),
        product_id: ProductId,
        ...product,
        is_sandbox: Type.Boolean(),
        viewed_at: Moment(),
      },
      { title: 'ProductView' },
    ),
    status: 201,
    // A view has no page of its own; it appears in the contact's timeline.
    location: ({ contact_id: id }: { readonly contact_id: string }) => `/contacts/${id}/timeline`,
    errors: ['contact_not_found'],
    async handle({ principal: { workspaceId, isSandbox }, body }) {
      const { contact_email: email, product_id: productId, ...told } = body
      if (!parseAddress(email)) throw refusal('contact_email', 'is not an email address')
      for (const name of ['product_url', 'image_url'] as const) checkUrl(told[name], name)
      if (productId.includes('\0')) throw refusal('product_id', 'must not contain NUL')
      if (told.metadata) checkMetadata(told.metadata)
      const product = told.currency === undefined ? told : { ...told, currency: checkCurrency(told.currency) }
      const view = await database.write(async (tx): Promise<ProductView> => {
        const contact = await findContact(tx.db, workspaceId, { email })
        if (!contact)
          throw new AppError('contact_not_found', 'no contact has this address', { path: 'contact_email' })
        const viewedAt = clock.now()
        const head = { workspaceId, isSandbox, contactId: contact.id, productId }
        const seen = { ...head, id: newId(), product, viewedAt }
        await insertProductView(tx.db, seen)
        await appendEvents(tx, [
          {
            kind: 'product.viewed',
            workspaceId,
            messageId: null,
            isSandbox,
            occurredAt: viewedAt,
            payload: { contactId: contact.id, productId },
          },
        ])
        tx.onCommit(onEvents)
        return seen
      })
      return {
        id: view.id,
        contact_id: view.contactId,
        product_id: productId,
        ...product,
        is_sandbox: isSandbox,
        viewed_at: isoTime(view.viewedAt),
      }
    },
  })
}

function checkUrl(text: string | undefined, path: string): void {
  if (text === undefined) return
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw refusal(path, 'is not an http or https URL')
}

function refusal(path: string, fault: string): AppError {
  return new AppError('validation_error', `${path} ${fault}`, { path })
}
