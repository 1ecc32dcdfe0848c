/** Rule -> test for templates. What is rendered where mail is sent waits for that. */
import { inFile, type Row } from '../row.js'

const served = inFile('content/templates-served')
const media = inFile('content/media-served')
const saved = inFile('content/saved-blocks-served')
const TABLE = 'Campaigns and templates'

export const CONTENT_ROWS: readonly Row[] = [
  {
    rule: 'name and html are required, description and json_structure optional; 201',
    from: ['Template > Creation fields name (required) html', `${TABLE} > POST /templates`],
    tests: [
      served('a template is created with version 1, returned in full and listed without content'),
      served('an invalid template is rejected by field name, merge tags with line and column'),
    ],
  },
  {
    rule: 'GET gives html and json_structure; lists leave them out and take a search',
    from: [
      `${TABLE} > GET /templates`,
      `${TABLE} > GET /templates/:id`,
      'Template > Other template record fields and',
      'What the service does > Templates with a merge-tag language',
    ],
    tests: [
      served('a template is created with version 1, returned in full and listed without content'),
      served('search matches each word in the name ignoring case and accents; wildcards are literal'),
    ],
  },
  {
    rule: 'every update makes a version; versions are listed, read and restored',
    from: ['Template > Every update creates a new', `${TABLE} > PATCH /templates/:id`],
    answers: [
      'GET /api/v1/templates/{id}/versions/{n}: not_found',
      'POST /api/v1/templates/{id}/versions/{n}/restore: not_found',
    ],
    tests: [served('every update creates a version that can be read and restored')],
  },
  {
    rule: 'html is what is sent; a structure without html is rendered, an unknown block type is a 400',
    from: ['Template > html is what is sent'],
    tests: [
      served('a structure without html is rendered'),
      served('html and structure: given fields are replaced, and null removes the structure'),
      served('an invalid template is rejected by field name, merge tags with line and column'),
    ],
  },
  {
    rule: 'all fourteen types of block, with their content and the settings',
    from: [
      'Template > blocks',
      'Template > settings.fontFamily',
      'Template > settings.contentWidth',
      'Template > settings.backgroundColor, contentBackgroundColor, defaultTextColor',
      'Template > header',
      'Template > text',
      'Template > button',
      'Template > image',
      'Template > divider',
      'Template > spacer',
      'Template > html',
    ],
    tests: [served('every block type of the contract is accepted and rendered with its fields')],
  },
  {
    rule: 'every block’s content has a published schema; an unknown field is a 400 with its path',
    from: [
      "decisions: Added after the whole contract was tried from outside > **Blocks** Every block's content has",
    ],
    tests: [served('an unknown block field is rejected with its path')],
  },
  {
    rule: 'whether a mail has an unsubscribe link is judged on what its recipient sees',
    from: [
      'decisions: Added after the whole contract was tried from outside > **Unsubscribe link** Whether a mail',
    ],
    tests: [served('an unsubscribe link hidden from the recipient does not count')],
  },
  {
    rule: 'deleting is a soft delete; a deleted or unknown template is a 404 template_not_found',
    from: [
      'Template > Deleting is a soft delete',
      `${TABLE} > DELETE /templates/:id`,
      'Errors > template_not_found',
    ],
    answers: [
      'GET /api/v1/templates/{id}: template_not_found',
      'PATCH /api/v1/templates/{id}: template_not_found',
      'DELETE /api/v1/templates/{id}: template_not_found',
      'GET /api/v1/templates/{id}/versions: template_not_found',
      'GET /api/v1/templates/{id}/versions/{n}: template_not_found',
      'POST /api/v1/templates/{id}/versions/{n}/restore: template_not_found',
      'POST /api/v1/templates/{id}/preview: template_not_found',
    ],
    tests: [served('a deleted template is gone everywhere')],
  },
  {
    rule: 'a preview renders subject, html and text with template_data or a contact',
    from: [],
    answers: ['POST /api/v1/templates/{id}/preview: contact_not_found'],
    tests: [served('a preview is rendered with template_data and the footer, and sends nothing')],
  },
  {
    rule: 'POST /templates/preview renders html or blocks that are not stored, with warnings about mail clients (additive)',
    from: [],
    answers: ['POST /api/v1/templates/preview: contact_not_found'],
    tests: [
      served('content that is not stored is previewed as a template with it would be'),
      served('a preview of faulty content says where the fault is'),
    ],
  },
  {
    rule: 'POST /templates/:id/restore restores a deleted template with its versions (additive)',
    from: [],
    answers: ['POST /api/v1/templates/{id}/restore: template_not_found'],
    tests: [served('a deleted template is restored with its versions')],
  },
  {
    rule: 'images for mail: POST /media takes a file, GET /media lists, GET, PATCH, DELETE /media/:id, POST /media/:id/restore (additive)',
    from: [`${TABLE} > GET /templates`],
    answers: [
      'POST /api/v1/media: unsupported_media_type',
      'POST /api/v1/media: request_timeout',
      'PATCH /api/v1/media/{id}: precondition_failed',
      'DELETE /api/v1/media/{id}: precondition_failed',
      'DELETE /api/v1/media/{id}: conflict',
      'POST /api/v1/media/{id}/restore: not_found',
    ],
    tests: [
      media('an image is uploaded, listed, found, changed and served'),
      media('a form uploads too, and the content decides what the file is'),
      media('a deleted image is no longer served, and can be restored for 30 days'),
      media('an image that a template shows is deleted by force only'),
      // Every upload is received by the same code.
      inFile('audience/transfer/imports-served')(
        'a file that does not come on is not waited for, and nothing of it is kept',
      ),
    ],
  },
  {
    rule: 'GET /media/usage tells how much of its limit a library uses; a full one takes no more (additive)',
    from: [`${TABLE} > GET /templates`],
    answers: ['POST /api/v1/media: limit_reached'],
    tests: [media('a library has a limit, and deleted images make room')],
  },
  {
    rule: 'blocks are saved under a name: POST and GET /saved-blocks, GET, PATCH, DELETE /saved-blocks/:id (additive)',
    from: [`${TABLE} > GET /templates`],
    answers: [
      'PATCH /api/v1/saved-blocks/{id}: precondition_failed',
      'DELETE /api/v1/saved-blocks/{id}: precondition_failed',
      'POST /api/v1/saved-blocks: limit_reached',
    ],
    tests: [
      saved('blocks are saved, listed, found, changed and deleted'),
      saved('blocks are validated as those of a template are'),
      saved('a workspace has at most 500, and sees none of another'),
      saved('any document of the contract comes back as it was sent'),
    ],
  },
]
