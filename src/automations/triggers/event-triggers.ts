/**
 * What an event means to automations: which type of trigger it is, whom it is about, and which triggers of that type it fits.
 *
 * Called by the consumer. Pure. An event that means nothing to them, such as a mail that a machine has opened, or a refund, is none.
 */
import { fold } from '../../core/fold.js'
import type { StoredEvent } from '../../events/store.js'
import type { Automation, TriggerType } from '../flows/automation.js'
import type { AwaitedEvent } from '../runs/run.js'

export const KINDS = [
  'contact.created',
  'contact.deleted',
  'list.member_added',
  'list.member_removed',
  'tag.added',
  'tag.removed',
  'form.submitted',
  'email.opened',
  'email.clicked',
  'conversion.created',
  'product.viewed',
] as const

export type Told = StoredEvent<(typeof KINDS)[number]>

/** Kinds that start runs and that no run waits for, and the type of trigger they are. */
export const STARTING = {
  'contact.created': 'contact_created',
  'list.member_added': 'list_joined',
  'list.member_removed': 'list_left',
  'tag.added': 'tag_added',
  'tag.removed': 'tag_removed',
  'form.submitted': 'form_submitted',
} as const satisfies Partial<Record<Told['kind'], TriggerType>>

/** An event as automations see it. */
export interface Sign {
  readonly type: TriggerType
  /** Undefined where the address is known alone. */
  readonly contactId: string | undefined
  readonly email: string | undefined
  /** What a run that it starts is given. */
  readonly data: Readonly<Record<string, unknown>>
  /** What a waiting run may wait for. */
  readonly awaited?: AwaitedEvent
  readonly messageId: string | null
  /** Whether a trigger of this type, as it is configured, means it. */
  fits(config: Automation['triggerConfig']): boolean
}

/** @returns undefined where nothing follows from it */
export function signOf(event: Told): Sign | undefined {
  const any = { messageId: null, email: undefined, fits: () => true }
  switch (event.kind) {
    case 'contact.created':
      return { ...any, type: STARTING[event.kind], contactId: event.payload.id, data: {} }
    case 'list.member_added':
    case 'list.member_removed': {
      const { contact_id: contactId, list_id: id, list_name: name } = event.payload
      return {
        ...{ ...any, contactId, data: { list_id: id, list_name: name } },
        type: STARTING[event.kind],
        fits: ({ listId }) => listId === id,
      }
    }
    case 'tag.added':
    case 'tag.removed': {
      const { contact_id: contactId, tag_name: name } = event.payload
      return {
        ...{ ...any, contactId, data: { tag_name: name } },
        type: STARTING[event.kind],
        fits: ({ tagName }) => typeof tagName === 'string' && fold(tagName.trim()) === fold(name),
      }
    }
    case 'form.submitted': {
      const { form_id: id, contact_id: contactId, fields } = event.payload
      return {
        ...{ ...any, contactId, data: { ...fields, form_id: id } },
        type: STARTING[event.kind],
        fits: ({ formId }) => formId === undefined || formId === id,
      }
    }
    case 'conversion.created':
      return purchase(event)
    case 'product.viewed': {
      const { contactId, productId: id } = event.payload
      return {
        ...{ ...any, contactId, data: { product_id: id } },
        type: 'page_viewed',
        awaited: 'page_viewed',
        fits: ({ productId }) => productId === undefined || productId === id,
      }
    }
    case 'email.opened':
    case 'email.clicked':
      return visit(event)
    default:
      return undefined
  }
}

function purchase({ payload }: Extract<Told, { kind: 'conversion.created' }>): Sign | undefined {
  const { contact_id: contactId, value, currency, id } = payload
  if (value < 0) return undefined
  return {
    ...{ contactId, email: undefined, messageId: null },
    type: 'purchase',
    awaited: 'purchase',
    data: { conversion_id: id, value, currency },
    fits: ({ minValue, currency: wanted }) =>
      (typeof minValue !== 'number' || value >= minValue) &&
      (typeof wanted !== 'string' || wanted.toUpperCase() === currency),
  }
}

function visit(event: Extract<Told, { kind: 'email.opened' | 'email.clicked' }>): Sign | undefined {
  const { payload, messageId } = event
  if (payload.isBot) return undefined
  const { to: email, contactId, campaignId, templateId } = payload
  const url = event.kind === 'email.clicked' ? event.payload.url : undefined
  const type = event.kind === 'email.opened' ? ('email_opened' as const) : ('email_clicked' as const)
  return {
    ...{ messageId, email, contactId },
    type,
    awaited: type,
    data: { message_id: messageId, ...(url === undefined ? {} : { url }) },
    fits: config =>
      (config['campaignId'] === undefined || config['campaignId'] === campaignId) &&
      (config['templateId'] === undefined || config['templateId'] === templateId) &&
      (config['url'] === undefined || url === undefined || config['url'] === url),
  }
}
