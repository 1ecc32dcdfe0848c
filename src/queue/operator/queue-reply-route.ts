/** `GET /queue/replies`: the replies behind deferrals and bounces of the last hour. */
import Type, { type Static } from 'typebox'
import { isoTime } from '../../core/moments.js'
import { adminRoute } from '../../http/admin-route.js'
import { Moment } from '../../http/answer/answer-fields.js'
import type { Route } from '../../http/route.js'
import type { LocateSite } from '../delivery-agent.js'
import { QUEUE_CHAPTER, siteField, workspaceField } from './queue-fields.js'
import type { RecentReplies, ReplyGroup } from './recent-replies.js'

interface ReplyParts {
  readonly replies: RecentReplies
  readonly locateSite: LocateSite
  readonly runningQueue: () => { siteNameOf(destination: string): string | undefined } | undefined
}

/** Groups in an answer. */
const MAX_REPLIES = 100

const ReplySchema = Type.Object(
  {
    site: Type.String({ description: 'Site of the destination.' }),
    destination: Type.String({ description: "The recipients' domain, A-labels." }),
    workspace_id: Type.String({ description: '`system`: mail of the appliance itself.' }),
    kind: Type.Enum(['deferred', 'bounced']),
    reply: Type.String({ description: 'The latest of those alike.' }),
    count: Type.Integer({ description: 'Attempts of the last hour that ended with it.' }),
    last_at: Moment(),
    message_id: Type.String({ description: 'The latest message that got it.' }),
  },
  { title: 'QueueReply' },
)

export function repliesRoute({ replies, runningQueue, locateSite }: ReplyParts): Route {
  const siteOf = async (destination: string) =>
    runningQueue()?.siteNameOf(destination) ?? (await locateSite(destination)).name
  return adminRoute({
    method: 'GET',
    path: '/queue/replies',
    access: { permission: 'queue:read', scope: 'query' },
    operationId: 'listQueueReplies',
    chapter: QUEUE_CHAPTER,
    summary: 'List the latest replies, grouped.',
    description:
      'Replies and faults that deferred or bounced mail in the last hour, since the server started. Replies that differ only in addresses, ' +
      `numbers and identifiers are one group. The ${MAX_REPLIES} most frequent.`,
    query: Type.Object(
      {
        site: Type.Optional(siteField),
        kind: Type.Optional(Type.Enum(['deferred', 'bounced'], { description: 'Default: both.' })),
        workspace_id: Type.Optional(workspaceField),
      },
      { additionalProperties: false },
    ),
    response: Type.Array(ReplySchema),
    async handle({ query: { site, kind }, workspaceId }) {
      const wanted = replies
        .list()
        .filter(one => workspaceId === undefined || one.workspaceId === workspaceId)
        .filter(one => kind === undefined || one.kind === kind)
        .sort((a, b) => b.count - a.count || b.lastAt - a.lastAt)
      const shown = []
      for (const one of wanted) {
        if (shown.length === MAX_REPLIES) break
        const name = await siteOf(one.destination)
        if (site === undefined || site === name) shown.push(replyToApi(one, name))
      }
      return shown
    },
  })
}

function replyToApi(one: ReplyGroup, site: string): Static<typeof ReplySchema> {
  return {
    site,
    destination: one.destination,
    workspace_id: one.workspaceId,
    kind: one.kind,
    reply: one.reply,
    count: one.count,
    last_at: isoTime(one.lastAt),
    message_id: one.messageId,
  }
}
