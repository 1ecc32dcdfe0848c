/** Rule -> test for contacts, lists, segments, tags and forms. */
import { inFile, type Row } from '../row.js'

const contacts = inFile('audience/contacts-served')
const lists = inFile('audience/lists-served')
const references = inFile('audience/references-served')
const forms = inFile('audience/forms-served')
const bounds = inFile('audience/bounds-served')
const transfer = inFile('audience/transfer/imports-served')
const cursors = inFile('http/cursors-served')
const editing = inFile('audience/editing-served')

const MADE = contacts('a contact is created with the given fields and added to a list')
const ONCE = contacts('an address is a contact once, whatever its case')
const CHANGED = contacts('only the fields given change; attributes are merged, and null clears')
const REFUSED = contacts('what cannot be a contact is refused by name')
const MISSING = contacts('a missing contact is a 404 contact_not_found')
const UPSERT = contacts('an upsert makes a contact, and changes the one that is there')
const UPSERT_ADDS = contacts('an upsert adds to lists and tags, and takes nothing away')
const BATCH = contacts('a thousand contacts are upserted at once, each with its own result')
const SEARCH = contacts('contacts are searched by words in address and names, and filtered, newest first')
const LIST = lists('a list is made, shown, changed and deleted; its members stay')
const MEMBERS = lists(
  'contacts are put into a list and taken out, by body or query; what is so already is skipped',
)
const DYNAMIC = lists('the members of a dynamic list follow from its conditions, and cannot be edited')
const DUPLICATES = lists('contacts in more than one list are found, of all lists or of one')
const TAG = lists('a tag is made once, put on contacts and taken off, and goes from all when it is deleted')
const DELETE_ALL = lists('deleting all asks for confirmation, and can be taken back for thirty days')
const BULK = lists('many contacts are deleted for good at once, up to 5,000')
const RESTORABLY = lists('contacts deleted restorably come back with their lists and tags')
const SEGMENT = lists('a segment is made, counted and listed; those that may be mailed are counted apart')
const USED = references(
  'what an active automation, a segment, a dynamic list or a form uses is deleted by force alone',
)
const CONDITIONS = lists('conditions that cannot be asked are refused, their rule named')
const FOLLOWS = lists('a contact follows what happens to its mail and its address')
const UNDER_WAY = lists('while all contacts are being deleted, nobody deletes or restores all of them again')

const FULL = bounds('a workspace has at most so many ${things}; where one is deleted there is room again')
const IMPORT = transfer('a CSV file creates contacts, in a list and with tags, and reports each rejected row')
const UNWANTED = transfer('a file cannot resubscribe contacts who opted out, and can unsubscribe others')
const CHARSETS = transfer(
  'a file is read in the charset that it is in, with commas, semicolons or tabs, as a form, or folded',
)
const REFUSED_FILE = transfer('a file that cannot be meant is refused before anything is imported')
const STALLED = transfer('a file that does not come on is not waited for, and nothing of it is kept')
const CANCEL = transfer('an import is cancelled while it waits or works, and what was done stays')
const CORRECTED = transfer('rejected rows come back as a file, which is imported again once corrected')
const ROUND_TRIP = transfer(
  'an export is what an import takes: coming back it changes nothing, and elsewhere it makes the same',
)
const EXPORT_FILTER = transfer(
  'an export is of all contacts, or of those that a filter, list, segment or tag leaves, oldest first',
)

const TABLE = 'Lists, segments, tags'

export const AUDIENCE_ROWS: readonly Row[] = [
  {
    rule: 'POST /contacts/erase removes a person everywhere and keeps a suppression',
    from: [
      'decisions: Added after the whole contract was tried from outside > **Erasure** POST /contacts/erase {email} removes',
    ],
    tests: [contacts('an erased person is gone everywhere, and a suppression still holds')],
  },
  {
    rule: 'a contact has id, email, names, attributes, subscribed (default true), created_at, and its lists where one is retrieved',
    from: [
      'What the service does > Contacts lists segments and tags',
      ...['id', 'email', 'first_name', 'last_name', 'attributes', 'subscribed', 'created_at', 'lists'].map(
        field => `Contact > ${field}`,
      ),
      'Contacts > GET /contacts/:id',
      'decisions: Contacts > Additive fields updated_at bounced (boolean)',
    ],
    tests: [MADE, ONCE],
  },
  {
    rule: 'POST /contacts makes a contact and puts it into a list; one that exists is a 409 duplicate',
    from: ['Contacts > POST /contacts', 'decisions: Contacts > Additive fields updated_at bounced (boolean)'],
    answers: [
      'POST /api/v1/contacts: duplicate',
      'POST /api/v1/contacts: not_found',
      'POST /api/v1/contacts: conflict',
    ],
    tests: [MADE, ONCE, REFUSED, DYNAMIC],
  },
  {
    rule: 'contacts are searched by several words in address and names, filtered by subscribed and bounced, and paged',
    from: ['Contacts > GET /contacts'],
    tests: [SEARCH, FOLLOWS],
  },
  {
    rule: 'GET /contacts filters by email, list_id, tag, segment_id, created_since and updated_since, and sorts',
    from: ['Contacts > GET /contacts'],
    answers: ['GET /api/v1/contacts: not_found'],
    tests: [cursors('contacts are listed by address, list, tag, segment and moment, in the order asked for')],
  },
  {
    rule: 'long lists page by an opaque cursor, which belongs to one list, its filters and its order',
    from: [
      'decisions: Added after the whole contract was tried from outside > **Idempotency-Key** is accepted on every',
    ],
    tests: [
      cursors('every long list is read to its end by cursor, and says the same total on each page'),
      cursors(
        'a cursor of another list, order or filter, of another workspace, or one that was changed is refused',
      ),
    ],
  },
  {
    rule: 'GET /contacts/:id/timeline and GET /contacts/:id/export show what is stored about one contact',
    from: ['Contacts > GET /contacts/:id'],
    answers: ['timeline', 'export'].map(what => `GET /api/v1/contacts/{id}/${what}: contact_not_found`),
    tests: [inFile('appliance/person')('the timeline and the export of a contact are read over HTTP')],
  },
  {
    rule: 'PATCH changes the fields given; null clears a name, attributes are merged, a null attribute goes',
    from: [
      'Contacts > PATCH /contacts/:id',
      'States and transitions > Contact PATCH subscribed',
      'decisions: Contacts > attributes PATCH merges a null',
    ],
    answers: ['PATCH /api/v1/contacts/{id}: duplicate'],
    tests: [CHANGED, ONCE],
  },
  {
    rule: 'a missing contact is a 404 contact_not_found',
    from: ['Contacts > DELETE /contacts/:id', 'Contacts > GET /contacts/:id'],
    answers: ['GET', 'PATCH', 'DELETE'].map(method => `${method} /api/v1/contacts/{id}: contact_not_found`),
    tests: [MISSING],
  },
  {
    rule: 'PUT /contacts makes the contact of an address or changes it',
    from: ['decisions: Contacts > PUT /contacts {email } (additive)'],
    tests: [UPSERT],
  },
  {
    rule: 'PUT /contacts adds to lists and tags in the same transaction, and never removes',
    from: ['decisions: Contacts > PUT /contacts {email } (additive)'],
    answers: ['PUT /api/v1/contacts: not_found', 'PUT /api/v1/contacts: conflict'],
    tests: [UPSERT_ADDS],
  },
  {
    rule: 'POST /contacts/batch upserts up to 1,000 contacts, each with its own result',
    from: ['decisions: Contacts > PUT /contacts {email } (additive)'],
    tests: [BATCH],
  },
  {
    rule: 'POST /contacts/import takes a CSV file, 202 {import_id}; columns by heading, unknown ones become attributes; GET /contacts/imports/:id shows progress, GET /contacts/imports/:id/rejected the rejected rows',
    from: ['decisions: Contacts > PUT /contacts {email } (additive)'],
    answers: [
      'POST /api/v1/contacts/import: not_found',
      'POST /api/v1/contacts/import: conflict',
      'POST /api/v1/contacts/import: unsupported_media_type',
      'POST /api/v1/contacts/import: request_timeout',
      'POST /api/v1/contacts/imports/{id}/cancel: conflict',
    ],
    tests: [IMPORT, UNWANTED, CHARSETS, REFUSED_FILE, STALLED, CANCEL, CORRECTED],
  },
  {
    rule: "GET /contacts/export streams CSV, cells that begin a formula prefixed with '",
    from: ['decisions: Contacts > PUT /contacts {email } (additive)'],
    answers: ['GET /api/v1/contacts/export: not_found'],
    tests: [ROUND_TRIP, EXPORT_FILTER],
  },
  {
    rule: 'up to 5,000 contacts are deleted at once, for good or restorably: {deleted, not_found}',
    from: ['Contacts > POST /contacts/bulk-delete', 'decisions: Contacts > attributes PATCH merges a null'],
    tests: [BULK, RESTORABLY],
  },
  {
    rule: 'delete-all wants confirm true, is in the activity log, and can be taken back for 30 days: {deleted, restorable_until}',
    from: [
      'Contacts > POST /contacts/delete-all',
      'States and transitions > Contact POST delete-all with confirm true',
      'Errors > confirmation_required',
      'decisions: Contacts > POST /contacts/restore {contact_ids? string[] <=',
    ],
    answers: [
      'POST /api/v1/contacts/delete-all: confirmation_required',
      'POST /api/v1/contacts/delete-all: conflict',
      'POST /api/v1/contacts/restore: conflict',
    ],
    tests: [DELETE_ALL, UNDER_WAY],
  },
  {
    rule: 'contacts that are in more than one list are listed, of all lists or of one',
    from: ['Contacts > GET /contacts/duplicates'],
    answers: ['GET /api/v1/contacts/duplicates: not_found'],
    tests: [DUPLICATES],
  },
  {
    rule: 'subscribed and bounced follow bounces, complaints, wishes and suppressions by hand',
    from: ['decisions: Contacts > Additive fields updated_at bounced (boolean)'],
    tests: [FOLLOWS],
  },
  {
    rule: 'lists are made, listed by type, shown with their member count, changed and deleted; members stay',
    from: [
      `${TABLE} > GET /lists`,
      `${TABLE} > POST /lists`,
      `${TABLE} > GET, PATCH, DELETE /lists/:id`,
      'Other resources > List fields name (required) description',
      'decisions: Contacts > PATCH bodies list {name? description?',
    ],
    tests: [LIST],
  },
  {
    rule: 'members of a dynamic list are computed; editing them is a 409 conflict',
    from: ['decisions: Contacts > List type static (default) or'],
    answers: ['POST /api/v1/lists/{id}/members: conflict', 'DELETE /api/v1/lists/{id}/members: conflict'],
    tests: [DYNAMIC],
  },
  {
    rule: 'members are added and removed by id: {added|removed, skipped, not_found}; DELETE also takes ?contact_ids=',
    from: [
      `${TABLE} > GET /lists/:id/members`,
      `${TABLE} > POST, DELETE /lists/:id/members`,
      'decisions: Contacts > List type static (default) or',
      'decisions: Contacts > PATCH bodies list {name? description?',
    ],
    tests: [MEMBERS],
  },
  {
    rule: 'deleting what an active automation, a scheduled campaign, a segment, a dynamic list or a form uses is a 409 conflict; force=true overrides',
    from: [
      'Errors > conflict',
      'decisions: Added after the whole contract was tried from outside > **References** Deleting a list tag',
    ],
    answers: ['lists', 'segments', 'tags', 'templates', 'automations'].map(
      things => `DELETE /api/v1/${things}/{id}: conflict`,
    ),
    tests: [USED],
  },
  {
    rule: 'a workspace has a bounded number of lists, segments and tags; one more is a 403 limit_reached',
    from: ['Errors > limit_reached'],
    answers: [
      ...['lists', 'segments', 'tags'].flatMap(things => [
        `POST /api/v1/${things}: limit_reached`,
        `POST /api/v1/${things}/{id}/restore: limit_reached`,
      ]),
      'PUT /api/v1/contacts: limit_reached',
    ],
    tests: [FULL],
  },
  {
    rule: 'deleted lists, tags, segments and forms can be restored for 30 days: POST /lists/:id/restore and so on (additive)',
    from: [
      `${TABLE} > GET, PATCH, DELETE /lists/:id`,
      `${TABLE} > GET, PATCH, DELETE /segments/:id`,
      `${TABLE} > GET, PATCH, DELETE /tags/:id`,
      'decisions: Deliverability > Forms (additive the source of',
    ],
    answers: [
      ...['lists', 'tags', 'segments', 'forms'].map(
        things => `POST /api/v1/${things}/{id}/restore: not_found`,
      ),
      'POST /api/v1/tags/{id}/restore: duplicate',
    ],
    tests: [
      editing('a deleted list or tag is restored with its contacts, and counts them right'),
      editing('a tag whose name was taken meanwhile is not restored'),
      editing('deleted segments and forms are restored; after thirty days nothing is'),
      editing('what another workspace deleted cannot be restored'),
    ],
  },
  {
    rule: 'rules ask for campaigns, purchases and coming days, and for campaigns that exist (additive)',
    from: [
      'decisions: Added after the whole contract was tried from outside > **Segment rules** With a number',
    ],
    tests: [
      references('rules ask who received, opened and clicked a campaign, and what contacts bought'),
      references(
        'a rule about campaigns, purchases or coming days that cannot be asked is refused with its path',
      ),
      references('a campaign that a rule names is not deleted without force'),
    ],
  },
  {
    rule: 'POST /segments/estimate counts the matches of unsaved conditions (additive)',
    from: [`${TABLE} > POST /segments/:id/estimate`],
    tests: [
      lists('conditions can be estimated before they are saved, with a sample for who may see contacts'),
    ],
  },
  {
    rule: 'segments are made, searched, shown, changed and deleted',
    from: [
      `${TABLE} > GET /segments`,
      `${TABLE} > POST /segments`,
      `${TABLE} > GET, PATCH, DELETE /segments/:id`,
    ],
    tests: [SEGMENT],
  },
  {
    rule: 'conditions are {match, rules}; all or any; all operators and fields, nested three deep',
    from: [
      'Other resources > Segment name (required) conditions =',
      'decisions: Contacts > Segment match all or any',
      'decisions: Added after the whole contract was tried from outside > **Segment rules** With a number',
    ],
    tests: [CONDITIONS, SEGMENT],
  },
  {
    rule: 'a segment is estimated {count, mailable_count}, and its contacts are listed',
    from: [
      `${TABLE} > POST /segments/:id/estimate`,
      `${TABLE} > GET /segments/:id/contacts`,
      'decisions: Contacts > Segment match all or any',
    ],
    tests: [SEGMENT],
  },
  {
    rule: 'tags have a name, color, description and contact_count; deleting one takes it off its contacts',
    from: [
      `${TABLE} > GET /tags`,
      `${TABLE} > POST /tags`,
      `${TABLE} > GET, PATCH, DELETE /tags/:id`,
      'Other resources > Tag name (required) color (string',
      'decisions: Contacts > PATCH bodies list {name? description?',
    ],
    answers: ['POST /api/v1/tags: duplicate', 'PATCH /api/v1/tags/{id}: duplicate'],
    tests: [TAG],
  },
  {
    rule: 'a tag is put on contacts and taken off, and its contacts are listed',
    from: [`${TABLE} > GET /tags/:id/contacts`, `${TABLE} > POST, DELETE /tags/:id/contacts`],
    tests: [TAG],
  },
  {
    rule: 'forms {name, list_ids, fields, redirect_url}: POST /forms, GET /forms, and GET, PATCH, DELETE /forms/:id',
    from: ['decisions: Deliverability > Forms (additive the source of'],
    answers: [
      'POST /api/v1/forms: not_found',
      'POST /api/v1/forms: conflict',
      'PATCH /api/v1/forms/{id}: not_found',
      'PATCH /api/v1/forms/{id}: conflict',
    ],
    tests: [
      forms('a form is made, shown, changed and deleted'),
      forms('what cannot be a form is refused by name'),
    ],
  },
  {
    rule: 'GET /forms/:id/submissions counts submissions in total and by day, at most 366 days (additive)',
    from: ['decisions: Deliverability > Forms (additive the source of'],
    answers: ['GET /api/v1/forms/{id}/submissions: not_found'],
    tests: [
      editing('submissions of a form are counted in total and by day'),
      forms('a confirmed submission is counted when it is made and when it is confirmed'),
    ],
  },
  {
    rule: 'GET /forms/:id/embed returns the form as plain HTML for another page',
    from: ['decisions: Deliverability > Forms (additive the source of'],
    tests: [forms('a form stands in a page elsewhere as plain HTML, and is sent from there as JSON too')],
  },
  {
    rule: 'POST /f/:id takes an HTML form or JSON, with a honeypot and a limit, and leads only to the form’s own redirect_url',
    from: ['decisions: Deliverability > Forms (additive the source of'],
    tests: [
      forms('a submitted form creates a contact, adds it to the lists, and is reported once'),
      forms('the page of a form asks with labels, escaped, and leads back to nowhere but its own address'),
      forms(
        'a submission with the hidden field filled in is not stored, and its sender is asked to submit again',
      ),
      forms('a form cannot flood a mailbox, and one address cannot flood a form'),
      forms('a form stands in a page elsewhere as plain HTML, and is sent from there as JSON too'),
    ],
  },
  {
    rule: 'a list with double_opt_in: a subscription through a form is confirmed by mail first',
    from: ['decisions: Contacts > List type static (default) or'],
    tests: [forms('with double opt-in nothing happens before the button behind the link is pressed')],
  },
]
