import Type from 'typebox'
import { route, type Route } from '../../http/route.js'
import { EXAMPLE_ID } from '../../msa/rest/send-schema.js'
import { archiveUrl, type ArchiveParts } from '../archive/archive-pages.js'
import { countPages } from '../archive/page-store.js'

export function archiveRoutes({ database, publicUrl }: ArchiveParts): Route[] {
  return [
    route({
      method: 'GET',
      path: '/archive',
      access: 'campaigns:read',
      operationId: 'getArchive',
      chapter: 'Campaigns',
      summary: "Get the public archive's addresses.",
      description:
        'The archive shows campaigns with `archive: true` that are being sent or completed, rendered without a recipient: contact merge ' +
        'tags have their fallback, and nothing is tracked. A campaign’s own page is at `url`, a slash and its id.',
      response: Type.Object(
        {
          url: Type.String({ description: 'Public page with the list.' }),
          feed_url: Type.String({ description: 'The same as RSS.' }),
          campaigns: Type.Integer({ description: 'Number of campaigns shown.' }),
        },
        { title: 'Archive' },
      ),
      exampleAnswer: {
        url: `https://mail.example.com/archive/${EXAMPLE_ID}`,
        feed_url: `https://mail.example.com/archive/${EXAMPLE_ID}/feed.xml`,
        campaigns: 12,
      },
      async handle({ principal: { workspaceId } }) {
        const url = archiveUrl(publicUrl, workspaceId)
        const campaigns = await countPages(database.slowReader, workspaceId)
        return { url, feed_url: `${url}/feed.xml`, campaigns }
      },
    }),
  ]
}
