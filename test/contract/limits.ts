/** The bounds of the contract and of `Postroad`: each is tested on both sides, by tests that name it (`read-claims.ts`). */

export interface BoundInSchema {
  /** Without `/api/v1`, e.g. `POST /email/send`. */
  readonly operation: string
  /** Dotted path in the body or query, without list indexes: `messages.subject`. */
  readonly field: string
  readonly keyword: 'maxLength' | 'maxItems' | 'minItems' | 'minimum' | 'maximum' | 'default'
  readonly value: number
}

const SEND = 'POST /email/send'
const BATCH = 'POST /email/batch'

/** Lists of the appliance that are paged. */
const LISTS = [
  '/email',
  '/email/batch/{batchId}',
  '/attributes',
  '/contacts',
  '/contacts/imports',
  '/contacts/duplicates',
  '/contacts/{id}/timeline',
  '/lists',
  '/forms',
  '/lists/{id}/members',
  '/segments',
  '/segments/{id}/contacts',
  '/tags',
  '/tags/{id}/contacts',
  '/domains',
  '/domains/{id}/reports',
  '/suppressions',
  '/bounces',
  '/conversions',
  '/activity',
  '/templates',
  '/templates/{id}/versions',
  '/saved-blocks',
  '/media',
  '/automations',
  '/automations/{id}/runs',
  '/campaigns',
  '/campaigns/{id}/recipients',
  '/campaigns/{id}/links',
  '/feeds',
  '/feeds/{id}/runs',
  '/webhooks/triggers',
  '/webhooks/{id}/deliveries',
]

/** By place; the value is where the appliance describes the bound, if it does. */
export const LIMITS: Readonly<Record<string, readonly BoundInSchema[]>> = {
  'Limits > Requests per API key': [],
  'Limits > Emails per API key': [],
  'Limits > Recipients in one send': [{ operation: SEND, field: 'to', keyword: 'maxItems', value: 100 }],
  'Limits > Messages in one batch': [
    { operation: BATCH, field: 'messages', keyword: 'minItems', value: 1 },
    { operation: BATCH, field: 'messages', keyword: 'maxItems', value: 1_000 },
  ],
  'Limits > Subject length': [
    { operation: SEND, field: 'subject', keyword: 'maxLength', value: 998 },
    { operation: BATCH, field: 'messages.subject', keyword: 'maxLength', value: 998 },
  ],
  'Limits > from_name length': [
    { operation: SEND, field: 'from_name', keyword: 'maxLength', value: 100 },
    { operation: BATCH, field: 'messages.from_name', keyword: 'maxLength', value: 100 },
  ],
  'Limits > HTML size': [
    { operation: SEND, field: 'html', keyword: 'maxLength', value: 262_144 },
    { operation: BATCH, field: 'messages.html', keyword: 'maxLength', value: 262_144 },
  ],
  'Postroad > size of text': [
    { operation: SEND, field: 'text', keyword: 'maxLength', value: 1_048_576 },
    { operation: BATCH, field: 'messages.text', keyword: 'maxLength', value: 1_048_576 },
  ],
  'Postroad > copies of a batch': [],
  'Limits > Contact first_name, last_name': ['first_name', 'last_name'].flatMap(field =>
    ['POST /contacts', 'PUT /contacts', 'PATCH /contacts/{id}'].map(
      operation => ({ operation, field, keyword: 'maxLength', value: 100 }) as const,
    ),
  ),
  'Limits > Bulk contact delete': [
    { operation: 'POST /contacts/bulk-delete', field: 'contact_ids', keyword: 'maxItems', value: 5_000 },
  ],
  'Limits > Soft-deleted contacts restorable': [],
  'Limits > Scheduling horizon': [],
  'Limits > Pagination': LISTS.flatMap(path => {
    const operation = `GET ${path}`
    return [
      { operation, field: 'limit', keyword: 'default', value: 100 },
      { operation, field: 'limit', keyword: 'maximum', value: 1_000 },
      { operation, field: 'limit', keyword: 'minimum', value: 1 },
      { operation, field: 'offset', keyword: 'default', value: 0 },
      { operation, field: 'offset', keyword: 'minimum', value: 0 },
    ] as const
  }),
  'Limits > Idempotency key lifetime': [],
  'Limits > Analytics period': [],
  'Postroad > hourly and daily emails of a workspace': [],
  'Postroad > metadata of conversions and product views': [],
  'Postroad > length of an Idempotency-Key': [],
  'Postroad > size of a message with its attachments': [],
}
