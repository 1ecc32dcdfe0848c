/**
 * Requests that the server sends to others, for the API description (`webhooks` of OpenAPI 3.1 §4.8.1).
 *
 * Declared by resources, added by `document.ts`. Pure.
 */
import type { TSchema } from 'typebox'
import { given } from '../../core/given.js'
import { pascalCase } from '../../core/pascal-case.js'
import type { Components } from './components.js'

export interface OutgoingRequest {
  readonly chapter: string
  readonly summary: string
  readonly description?: string
  /** Descriptions of header fields, by name. */
  readonly headers: Readonly<Record<string, string>>
  /** Schema of the JSON body. */
  readonly body: TSchema
  readonly example: unknown
}

/** By name, e.g. `email.delivered`. */
export type OutgoingRequests = Readonly<Record<string, OutgoingRequest>>

export function describeOutgoing(requests: OutgoingRequests, components: Components): object {
  return Object.fromEntries(
    Object.entries(requests).map(([name, request]) => [name, { post: describe(name, request, components) }]),
  )
}

function describe(
  name: string,
  { chapter, summary, description, headers, body, example }: OutgoingRequest,
  components: Components,
): object {
  return {
    operationId: `on${pascalCase(name)}`,
    summary,
    ...given({ description }),
    tags: [chapter],
    security: [],
    parameters: Object.entries(headers).map(([header, meaning]) => ({
      name: header,
      in: 'header',
      required: true,
      description: meaning,
      schema: { type: 'string' },
    })),
    requestBody: {
      required: true,
      content: { 'application/json': { schema: components.show(body), example } },
    },
    responses: {
      '2XX': {
        description: 'Delivered. Any other response is a failure and is retried; 410 disables the webhook.',
      },
    },
  }
}
