/** Routes of batches: send many messages at once, and get their results. */
import Type, { type Static } from 'typebox'
import { AppError } from '../../core/errors.js'
import { isUuid } from '../../core/ids.js'
import { isoTime } from '../../core/moments.js'
import type { Queries } from '../../db/database.js'
import { Id, IdOrNull, Moment, MomentOrNull } from '../../http/answer/answer-fields.js'
import { OffsetQuery, pageOf, type Page } from '../../http/pagination.js'
import { Reply, route, type Route } from '../../http/route.js'
import { sendBatch } from './send-batch.js'
import { findBatch, listResults, type Batch } from '../batch-store.js'
import type { SendParts } from './send-email.js'
import {
  BATCH_BODY_LIMIT,
  BATCH_BODY_VALUES,
  BatchMessage,
  EXAMPLE_ID,
  MAX_BATCH_COPIES,
  SEND_BODY_LIMIT,
  SEND_EXAMPLE,
} from './send-schema.js'

const errorFields = {
  index: Type.Integer({ description: 'From 0.' }),
  to: Type.String(),
  code: Type.String(),
  message: Type.String(),
}

const StatusOfBatch = Type.Enum(['processing', 'completed', 'failed'], {
  description:
    '`processing` until the last message is released to the queue, then `completed`; `failed` if none was accepted.',
})

const batchFields = {
  batch_id: Id(),
  is_sandbox: Type.Boolean(),
  status: StatusOfBatch,
  total: Type.Integer(),
  sent: Type.Integer({ description: 'Messages accepted for their recipient.' }),
  failed: Type.Integer(),
  skipped: Type.Integer({ description: 'Messages whose recipient is suppressed or invalid.' }),
  errors: Type.Array(Type.Object(errorFields, { title: 'BatchError' }), {
    description: 'Why messages failed.',
  }),
}

const BatchBody = Type.Object(
  { messages: Type.Array(BatchMessage, { minItems: 1, maxItems: 1_000 }) },
  { additionalProperties: false, title: 'BatchRequest' },
)

const BatchStatus = Type.Object(
  {
    ...batchFields,
    created_at: Moment(),
    completed_at: MomentOrNull(),
    results: Type.Array(
      Type.Object(
        {
          index: Type.Integer({ description: 'From 0.' }),
          to: Type.String(),
          message_id: IdOrNull(),
          success: Type.Boolean(),
          reason: Type.Optional(Type.String({ description: '`suppressed`, `invalid`, or the error code.' })),
        },
        { title: 'BatchResult' },
      ),
      { description: 'Results of messages `offset` to `offset + limit - 1`.' },
    ),
  },
  { title: 'Batch' },
)

export function batchRoutes(parts: SendParts): Route[] {
  const { database, clock } = parts
  return [
    route({
      method: 'POST',
      path: '/email/batch',
      access: 'email:send',
      operationId: 'sendEmailBatch',
      chapter: 'Email',
      summary: 'Send a batch of emails.',
      description:
        'Sends up to 1,000 messages, each to one recipient. An invalid field in any message rejects the whole request, with a ' +
        'path that names the message (`messages.3.to`); so does exceeding a limit of the workspace. A message that violates a ' +
        "sending rule fails alone and is listed in `errors`. Messages are released to the queue at the key's email rate; a batch " +
        'is never refused because of that rate. Copies (cc, bcc) are mailed and count against limits and the rate, but not in ' +
        `the totals; a batch may have at most ${MAX_BATCH_COPIES} of them. An invalid address in cc or bcc fails its message.`,
      body: BatchBody,
      example: { messages: [SEND_EXAMPLE, { ...SEND_EXAMPLE, to: 'bob@example.net' }] },
      exampleAnswer: {
        batch_id: EXAMPLE_ID,
        is_sandbox: false,
        status: 'processing',
        total: 2,
        sent: 2,
        failed: 0,
        skipped: 0,
        errors: [],
      },
      bodyLimit: Math.max(BATCH_BODY_LIMIT, SEND_BODY_LIMIT + parts.messageLimit),
      bodyValues: BATCH_BODY_VALUES,
      keepsAnswer: true,
      status: 202,
      response: Type.Object(batchFields),
      errors: ['limit_reached'],
      async handle({ principal, body, claim, peer }) {
        const { status, value } = await sendBatch(
          parts,
          principal,
          peer,
          body.messages,
          claim,
          (batch, now) => ({
            status: 202,
            value: batchToApi(batch, now),
          }),
        )
        return new Reply(status, value)
      },
    }),
    route({
      method: 'GET',
      path: '/email/batch/:batchId',
      access: 'email:read',
      operationId: 'getEmailBatch',
      chapter: 'Email',
      summary: 'Get a batch and its results.',
      params: Type.Object({ batchId: Type.String({ maxLength: 64 }) }),
      query: OffsetQuery,
      response: BatchStatus,
      errors: ['not_found'],
      async handle({ principal, params, query }) {
        const id = params.batchId.toLowerCase()
        const batch = isUuid(id) ? await findBatch(database.reader, principal.workspaceId, id) : undefined
        if (!batch) throw new AppError('not_found', 'no such batch')
        return batchWithResults(database.reader, batch, pageOf(query), clock.now())
      },
    }),
  ]
}

function batchToApi(batch: Batch, now: number) {
  return {
    batch_id: batch.id,
    is_sandbox: batch.isSandbox,
    status: statusOf(batch, now),
    total: batch.total,
    sent: batch.sent,
    failed: batch.failed,
    skipped: batch.skipped,
    errors: [...batch.errors],
  }
}

function statusOf({ failed, total, releasedAt }: Batch, now: number): Static<typeof StatusOfBatch> {
  if (failed === total) return 'failed'
  return releasedAt > now ? 'processing' : 'completed'
}

async function batchWithResults(
  db: Queries,
  batch: Batch,
  page: Page,
  now: number,
): Promise<Static<typeof BatchStatus>> {
  const accepted = (await listResults(db, batch.id, page)).map(({ index, to, messageId, reason }) => ({
    index,
    to,
    message_id: messageId,
    success: reason === null,
    ...(reason === null ? {} : { reason }),
  }))
  const refused = batch.errors
    .filter(({ index }) => index >= page.offset && index < page.offset + page.limit)
    .map(({ index, to, code }) => ({ index, to, message_id: null, success: false, reason: code }))
  return {
    ...batchToApi(batch, now),
    created_at: isoTime(batch.createdAt),
    completed_at: batch.releasedAt > now ? null : isoTime(batch.releasedAt),
    results: [...accepted, ...refused].sort((a, b) => a.index - b.index),
  }
}
