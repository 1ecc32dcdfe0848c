/** REST routes of feeds. */
import Type from 'typebox'
import { PageQuery } from '../http/pagination.js'
import { DONE, Done } from '../http/answer/answer-fields.js'
import { listRoute, route, type Route } from '../http/route.js'
import type { FeedParts } from './feed.js'
import {
  FEED_EXAMPLE,
  FEED_EXAMPLE_ANSWER,
  FeedChangesBody,
  FeedParams,
  FeedPreviewSchema,
  FeedRunSchema,
  FeedSchema,
  feedToApi,
  NewFeedBody,
  PREVIEW_EXAMPLE,
  RUN_EXAMPLE,
  runToApi,
} from './feed-schema.js'
import { listFeeds, listRuns } from './feed-store.js'
import { changeFeed, createFeed, previewFeed, removeFeed, requireFeed, tagged } from './feeds.js'
import { runFeed } from './run-feed.js'

const CHAPTER = { chapter: 'Feeds' }
const NAMED = ['not_found', 'template_not_found'] as const

export function feedRoutes(parts: FeedParts): Route[] {
  return [...readingRoutes(parts), ...writingRoutes(parts), ...runningRoutes(parts)]
}

function readingRoutes({ send: { database } }: FeedParts): Route[] {
  return [
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/feeds',
      access: 'campaigns:read',
      operationId: 'listFeeds',
      summary: 'List feeds, newest first.',
      query: PageQuery,
      item: FeedSchema,
      async handle({ principal }, page) {
        const found = await listFeeds(database.slowReader, principal.workspaceId, page)
        return { ...found, items: found.items.map(feedToApi) }
      },
    }),
    route({
      ...CHAPTER,
      method: 'GET',
      path: '/feeds/:id',
      access: 'campaigns:read',
      operationId: 'getFeed',
      hasEtag: true,
      summary: 'Get a feed.',
      params: FeedParams,
      response: FeedSchema,
      exampleAnswer: FEED_EXAMPLE_ANSWER,
      errors: ['not_found'],
      handle: async ({ principal, params }) =>
        tagged(await requireFeed(database.reader, principal.workspaceId, params.id)),
    }),
    listRoute({
      ...CHAPTER,
      method: 'GET',
      path: '/feeds/:id/runs',
      access: 'campaigns:read',
      operationId: 'listFeedRuns',
      summary: "List a feed's runs, newest first.",
      description: 'Runs are kept for 400 days.',
      params: FeedParams,
      query: PageQuery,
      item: FeedRunSchema,
      errors: ['not_found'],
      async handle({ principal, params }, page) {
        const { seq } = await requireFeed(database.reader, principal.workspaceId, params.id)
        const found = await listRuns(database.slowReader, seq, page)
        return { ...found, items: found.items.map(runToApi) }
      },
    }),
  ]
}

function writingRoutes(parts: FeedParts): Route[] {
  return [
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/feeds',
      access: 'campaigns:send',
      operationId: 'createFeed',
      hasEtag: true,
      summary: 'Create a feed.',
      description:
        'On each scheduled time the feed is read, and items that were not sent before become a campaign to the list or segment; without new ' +
        'items nothing is sent. The feed is read now, too: the items it contains are not sent, except the newest `initial_items` with the ' +
        'first run. Returns 400 if it cannot be read. Private addresses are refused as for webhooks. The audience, template and sender ' +
        'follow the rules of campaigns.\n\n' +
        'An item is known by its guid or id, by its link (without scheme, `www.`, tracking parameters and fragment), or by its title and date. ' +
        'Unknown items dated before the newest item sent are not new. Returns 400 if all items have the same guid. A time that passed while the ' +
        'server was stopped is made up once.',
      body: NewFeedBody,
      example: FEED_EXAMPLE,
      exampleAnswer: FEED_EXAMPLE_ANSWER,
      response: FeedSchema,
      status: 201,
      errors: [...NAMED, 'limit_reached'],
      handle: async ({ principal, body }) => tagged(await createFeed(parts, principal, body)),
    }),
    route({
      ...CHAPTER,
      method: 'PATCH',
      path: '/feeds/:id',
      access: 'campaigns:send',
      operationId: 'updateFeed',
      hasEtag: true,
      checksEtag: true,
      summary: 'Update a feed.',
      description:
        'Omitted fields keep their value. A new `url` is read at once, and the items it contains are not sent. While disabled, a feed ' +
        'does not run; items that appear meanwhile are sent by the first run afterwards.',
      params: FeedParams,
      body: FeedChangesBody,
      example: { schedule: FEED_EXAMPLE.schedule },
      exampleAnswer: FEED_EXAMPLE_ANSWER,
      response: FeedSchema,
      errors: [...NAMED, 'conflict'],
      handle: async ({ principal, params, body, precondition }) =>
        tagged(await changeFeed(parts, principal, params.id, body, precondition)),
    }),
    route({
      ...CHAPTER,
      method: 'DELETE',
      path: '/feeds/:id',
      access: 'campaigns:send',
      operationId: 'deleteFeed',
      checksEtag: true,
      summary: 'Delete a feed.',
      description: 'With its history. Its campaigns stay.',
      params: FeedParams,
      response: Done,
      errors: ['not_found'],
      async handle({ principal, params, precondition }) {
        await removeFeed(parts, principal, params.id, precondition)
        return DONE
      },
    }),
  ]
}

function runningRoutes(parts: FeedParts): Route[] {
  const { database } = parts.send
  return [
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/feeds/:id/preview',
      access: 'campaigns:read',
      operationId: 'previewFeed',
      summary: 'Preview what a feed would send.',
      description:
        'Reads the feed and renders the campaign that a run would send now. Sends and remembers nothing. Returns 400 if the feed cannot ' +
        'be read, or contains no items.',
      params: FeedParams,
      body: Type.Object({}, { additionalProperties: false, title: 'FeedPreviewRequest' }),
      isBodyOptional: true,
      isReadOnly: true,
      response: FeedPreviewSchema,
      exampleAnswer: PREVIEW_EXAMPLE,
      errors: [...NAMED, 'missing_from_email'],
      handle: ({ principal, params }) => previewFeed(parts, principal.workspaceId, params.id),
    }),
    route({
      ...CHAPTER,
      method: 'POST',
      path: '/feeds/:id/run',
      access: 'campaigns:send',
      operationId: 'sendFeed',
      summary: 'Run a feed now.',
      description:
        'Reads the feed and sends its new items at once, whether it is enabled or not. Its schedule stays. A fault of the feed is a run ' +
        'with the status `failed`. Returns 409 if it is being run or changed at the same time.',
      params: FeedParams,
      body: Type.Object({}, { additionalProperties: false, title: 'FeedRunRequest' }),
      isBodyOptional: true,
      requiresIdempotencyKey: true,
      keepsAnswer: true,
      response: FeedRunSchema,
      exampleAnswer: { ...RUN_EXAMPLE, is_manual: true },
      errors: ['not_found', 'conflict'],
      async handle({ principal: { workspaceId, actor }, params, claim }) {
        const feed = await requireFeed(database.reader, workspaceId, params.id)
        return runToApi(await runFeed(parts, feed, { actor, claim }))
      },
    }),
  ]
}
