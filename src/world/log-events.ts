/**
 * Every log event, by level, with its meaning.
 *
 * `Log` accepts no other event, so this list is complete. `docs/logs.md` is generated from it. Operators match on these
 * names: once released, a name does not change.
 */
export const LOG_EVENTS = {
  error: {
    'account mail not attempted':
      'An invitation or a reset could not be sent because of an internal error. It is retried.',
    'account mail not read': 'Invitations and resets that are due could not be read. It retries.',
    'account mail result not stored':
      'How an attempt to send an invitation or a reset ended could not be stored. It is repeated with a new link.',
    'automation run failed, rescheduled':
      'A step failed inside the server. The run is retried later; the other runs continue.',
    'automation runner failed': 'The runner could not read due runs. It retries.',
    'background work not started':
      'This node holds the lease of a kind of background work (`work`), and could not start it. It retries.',
    'node removed by others':
      'This node was not heard of for 12 seconds, so other nodes took over its work. It ends; the service manager starts it again.',
    'campaign check step failed, retrying':
      'A step of the check of a campaign failed. It is retried; after five failures the check ends as failed.',
    'campaign checks failed': 'The runner could not read which campaigns to check. It retries.',
    'campaign holds not read, retrying':
      'The list of paused and cancelled campaigns could not be read. Their mail stays held.',
    'campaign runner failed': 'The runner could not read campaigns. It retries.',
    'campaign step failed, retrying':
      'A campaign could not enqueue its next recipients. It retries from the same place.',
    'certificate not stored':
      'A new certificate was issued but could not be written to the database. It is in use, and stored later.',
    'certificate order failed':
      'The ACME server issued no certificate. `error` says why, `nextAttemptAt` when it is tried again.',
    'certificate reload failed':
      'The changed certificate files are unusable. The previous certificate stays in use.',
    'checkpoint thread failed':
      'SQLite checkpoints now run inside commits, which are slower. The thread is restarted later.',
    'claimed messages not loaded': 'Claimed messages could not be read. They are released and claimed again.',
    'claims not released': 'Claimed messages could not be released. It retries.',
    'configuration reload failed':
      'The changed configuration is invalid. The running configuration stays in effect.',
    'database files missing':
      'The database files were moved or deleted. Nothing is accepted or sent; `fix` says what to do.',
    'database write failed': 'SQLite could not write. New mail is refused until a write succeeds.',
    'date trigger scan failed': 'The dates that start an automation could not be read. The scan is repeated.',
    'delivery agent failed': 'A delivery ended with an internal error. The message is retried.',
    'delivery outcome abandoned': 'The result of a delivery attempt could not be stored at all.',
    'delivery outcome recorded incompletely':
      'The result of a delivery attempt was stored without part of its details.',
    'delivery outcome write failed': 'Results of deliveries could not be stored. The write is retried.',
    'delivery thread ended': 'A delivery thread crashed and is restarted. Its deliveries are retried.',
    'disk space exhausted':
      'Free space fell below `limits.disk_reserve`. New mail is refused; accepted mail is still delivered.',
    'domain check failed': 'The DNS records of a domain could not be looked up.',
    'download interrupted': 'An export ended before its last row.',
    'due times not corrected':
      'The clock was set back and the queue could not be adjusted. It is tried again.',
    'event consumer failed': 'A consumer of the event log could not work. It retries from the same event.',
    'event set aside': 'One event failed repeatedly and was skipped. `postroad event list` shows it.',
    'expired messages not removed': 'Expired messages could not be ended. They are tried again.',
    'feed run failed, retrying':
      'A feed that was due could not be run because of an internal error. It is retried in the next minute.',
    'idempotency key not updated':
      'The answer of a request could not be stored, or its key not released. A repeat is refused for an hour.',
    'image thread failed': 'The thread that reads uploaded images crashed. It restarts with the next one.',
    'import interrupted': 'An import failed inside the server. It retries from the same row.',
    'import reader exited':
      'The thread that reads an import file crashed. The import is retried once, then fails.',
    'importer failed': 'Imports could not be processed; retried with back-off.',
    'inbound mail effects not written': 'The result of a bounce or report could not be stored.',
    'inbound mail not parsed':
      'A mail crashed the parser and was skipped. `postroad inbound show` prints it.',
    'inbound mail parsing timed out': 'A mail kept the parser busy beyond `limitMs` and was skipped.',
    'inbound parser thread ended': 'The parser thread crashed and is restarted.',
    'inbound processing failed, retrying':
      'Stored inbound mail could not be read from the database. It retries.',
    'job failed': 'A scheduled job failed. It runs again at its next time; `postroad jobs` shows its state.',
    'messages without content expired': 'Queued messages whose content no longer exists were ended.',
    'page failed': 'A public page failed with an internal error.',
    'claims not checked': 'Claims whose commit was never answered could not be looked for. It retries.',
    'queue not claimed': 'Due messages could not be claimed. It retries.',
    'queue not read': 'Due messages could not be read. It retries.',
    'request body thread ended':
      'The thread that reads large request bodies crashed. It restarts with the next one.',
    'request failed': 'An API request failed with an internal error (500).',
    'sandbox runner failed': 'Scheduled mail of a sandbox could not be started.',
    'segment trigger scan failed':
      'The segment that starts an automation could not be evaluated. The scan is repeated.',
    'set-aside event failed': 'An event retried by `postroad event retry` failed again.',
    'sign-in link not mailed':
      'Somebody who lost the password asked for a link, and it could not be stored. It is not retried: they can ask again.',
    'slow reader thread exited': 'The thread for long queries crashed and is restarted.',
    'smtp receiver failed': 'An SMTP session failed with an internal error. The client was answered 451.',
    'stored certificate rejected':
      'The ACME certificate in the database is unusable; `error` says why. The one in use stays until another is obtained.',
    'visit counting failed': 'Clicks and opens could not be counted. They are kept and retried.',
    'visit not recorded': 'A click or open could not be written. The reader was redirected all the same.',
    'visit write failed':
      'Clicks and opens could not be written. The write is retried; readers are redirected meanwhile.',
    'webhook attempt abandoned': 'The result of a webhook attempt could not be stored at all.',
    'webhook attempt recorded incompletely':
      'The result of a webhook attempt was stored without part of its details.',
    'webhook attempt write failed': 'Results of webhook attempts could not be stored. The write is retried.',
    'webhook queue read failed': 'Due webhook deliveries could not be read. It retries.',
  },
  warn: {
    'delivery thread replaced':
      'Building a message or a preview took too long. That one fails; the thread finishes its other deliveries, and another takes its place.',
    'account mail failed':
      'An invitation or a reset was rejected, or could not be delivered in time. `summary` says why.',
    'backup cannot be restored':
      'The server made a backup that `restore` would refuse; `reason` says why. It and all older backups are kept.',
    'claims without an answer released':
      'The database made commits whose answer was lost, as in a failover. What they claimed is due again.',
    'node not renewed':
      'This node could not say in the database that it is alive. After 12 seconds others take over its work.',
    'job requests not read':
      'This node could not read or answer requests of other nodes to run a job. It retries within seconds.',
    'node starts drained':
      'The operator drained this node before it was restarted. It takes no work until `postroad nodes resume`.',
    'background work not handed over':
      'This node could not release the lease of a kind of background work (`work`) that another is to take. It retries.',
    'node removed':
      'Another node was not heard of for 12 seconds. The messages it had claimed are tried again.',
    'automation entries limited': 'A contact entered an automation more often than allowed in an hour.',
    'clock corrected':
      "This machine's clock differs from that of the PostgreSQL server. Times were moved by `byMs` to follow the latter.",
    'certificate check failed': 'The certificate has expired or expires soon. Logged once a day.',
    'certificate not configured': 'SMTP clients are shown a self-signed certificate.',
    'clock set back, correcting due times': 'The system clock was set back by `byMs`.',
    'configuration keys ignored': 'The file sets keys that have no effect in this version.',
    'configuration warning': 'A setting is valid but likely wrong.',
    'deliveries interrupted':
      'The server stopped before some hosts had answered the end of the message. These messages may arrive twice.',
    'delivery notification failed': 'A delivery status notification could not be sent to the submitter.',
    'domain records failed': 'Verification is lost if the records stay wrong for three days.',
    'domain verification lost':
      'The records of a domain have been wrong for too long. Its mail is no longer sent in its name.',
    'form submission failed': 'A signup form could not store a submission.',
    'identity provider unavailable':
      'The OpenID provider gave no usable answer to a sign-in of an operator. `reason` says why.',
    'job interrupted': 'The server stopped while a job was running.',
    'log lines dropped': 'Standard output was not read in time. `lines` counts what is missing.',
    'old backup not deleted': 'A backup beyond `backup.keep` could not be deleted.',
    'parts of an unfinished inbound mail not deleted': 'They are deleted at the next start.',
    'proxy header rejected':
      'Connections from a network in `proxy_protocol_from` were closed: `reason` says what was wrong with the last one, `count` how many there were since the last line.',
    'queue held after restore':
      'The database was restored from a backup. Nothing is sent until `postroad queue release --all`.',
    'rejected message parts not deleted': 'They are deleted at the next start.',
    'restart required': 'Changed settings that take effect at the next start.',
    'role mapping ignored': '`[[oidc.roles]]` names workspaces that do not exist. Their roles are not given.',
    'sign-in failed':
      "An operator's password, code or passkey was wrong. `lockedOut`: further tries are refused, from this address or everywhere.",
    'slow read aborted': 'A query ran longer than `limitMs`.',
    'smtp client speaks HTTP': 'The connection was closed.',
    'smtp client spoke before the greeting': 'The connection was closed.',
    'smtp commands injected behind STARTTLS':
      'The client sent plaintext after STARTTLS. The connection was closed.',
    'submission login locked': 'Too many failed logins with one key, from an address or from everywhere.',
    'upgrade copy skipped':
      'The database is upgraded without a copy from before (`storage.copy_before_upgrade`); `reason` says why.',
    'upgrade state not written':
      'How far the upgrade is could not be written to `upgrade.json` of the data folder, so `doctor` cannot show it. The upgrade proceeds.',
    'trusted network key rejected': 'The key configured for a trusted network does not exist or was revoked.',
    'spam score failed':
      'The rspamd of `campaigns.rspamd_url` could not be reached, or its answer could not be read. The check of the campaign goes on without it.',
    'feed failing': 'An RSS or JSON feed could not be sent four times in a row. It stays scheduled.',
    'webhook disabled': 'A webhook failed for days, or its receiver answered 410.',
  },
  info: {
    'upgrade started': 'This version upgrades the database before it listens: `migrations` are pending.',
    'upgrade copy in progress': 'The copy from before the upgrade is being written.',
    'upgrade copy made':
      'A copy of the database from before the upgrade is in `file`, which `postroad restore` accepts.',
    'upgrade copy kept': 'The upgrade was interrupted, and continues. The copy from before it is kept.',
    'upgrade copy not applicable':
      'The database is a PostgreSQL server, which Postroad does not copy. Use pg_dump.',
    'upgrade copy deleted': 'A copy from before an earlier upgrade was deleted; the newest two are kept.',
    'migration started': 'One step of the upgrade, `number` of `of`.',
    'migration applied': 'One step of the upgrade is done and will not be repeated.',
    'upgrade completed': 'The database has the schema of this version.',
    'account mail captured':
      'With `mta.capture`, an invitation or a reset is not sent: `link` is its one-time link, shown nowhere else.',
    'account mail deferred': 'An invitation or a reset was not accepted yet. It is retried.',
    'account mail delivered': 'An invitation or a reset was accepted by a server of the recipient.',
    'outgoing call refused':
      'A host that a workspace named, for a webhook or a feed, has no address that may be called. Workspaces are not told which.',
    'delivery notification skipped':
      'A submitter was not notified: its address is not at a verified domain of the workspace, or the limits are used up for days.',
    'destination split': 'So much mail waits for a destination that several nodes deliver to it.',
    'background work taken over': 'This node now does a kind of background work (`work`) for all nodes.',
    'background work handed over':
      'This node is drained, stops, or had more than its share, and released the lease of a kind of background work (`work`); another takes it.',
    'address suppressed': 'A bounce or complaint added an address to the suppression list.',
    'certificate obtained': 'The ACME server issued a certificate, which is in use.',
    'certificate reloaded':
      'Changed certificate files were loaded, or a certificate that another node obtained by ACME.',
    'checkpoint thread recovered': 'SQLite checkpoints run beside commits again.',
    'claims of a crashed process released': 'The last process was killed. Its deliveries are retried.',
    'configuration reloaded': 'After SIGHUP. `changed` names the keys.',
    'database files restored': 'The database files are back in place.',
    'database shrunk': 'Free space inside the database file was returned to the file system.',
    'database writes resumed': 'SQLite can write again; new mail is accepted.',
    'disk space recovered': 'New mail is accepted again.',
    'domain records restored': 'The domain stays verified.',
    'domain verified': 'All required DNS records of a domain are correct.',
    'forged inbound address rejected': 'Mail to a forged or expired return path was refused.',
    'forged inbound mail ignored': 'Inbound reports named messages with forged or expired tokens.',
    'login failed': 'An SMTP login was rejected.',
    'mail refused': 'An SMTP listener rejected a message or recipient.',
    'message accepted': 'A message was stored and queued.',
    'message bounced': 'A host rejected a message, or a bounce arrived later.',
    'message complained': 'A recipient reported a message as spam.',
    'message deferred': 'A delivery attempt failed temporarily. `nextAttemptAt` says when it is retried.',
    'message delivered': 'The receiving host accepted a message.',
    'message failed': 'A message was given up for a reason other than a bounce.',
    'message not delivered': 'A message ended for another reason, such as cancellation, during an attempt.',
    'message skipped': 'A recipient was left out; `reason` says why.',
    'message suppressed': 'The recipient is on the suppression list.',
    'old backup deleted': 'A new backup was completed, and `backup.keep` newer ones exist.',
    'old records deleted': 'Records beyond their retention were deleted.',
    'operator sign-in refused':
      'A sign-in with OpenID Connect was refused. `code` is what the sign-in page shows, `reason` says more.',
    'page refused': 'A public page answered with an error status.',
    'recipients at nonexistent domains suppressed': 'Their domains publish no mail host.',
    'request refused': 'An API request was answered with an error status.',
    'retired DKIM keys replaced': 'Rotated keys were removed after their grace period.',
    'server started': 'The server listens on the addresses in the fields.',
    'server stopped': 'Every delivery has ended and the database is closed.',
    'server stopping': 'No new work is begun; deliveries may finish within `graceMs`.',
    'set-aside event retried': 'An event retried by `postroad event retry` succeeded.',
    'signal received': 'SIGTERM or SIGINT stops the server, SIGHUP reloads the configuration.',
  },
  debug: {
    'certificate not read':
      'PostgreSQL did not answer when another node may have stored a certificate. It is tried again.',
    'database connection lost': 'PostgreSQL closed an idle connection. Another is opened when it is needed.',
    'database notifications interrupted':
      'Until the connection is back, the node polls every two seconds for what others change.',
    'database rewrite failed':
      'The database could not be rewritten to allow shrinking. It is tried at the next start.',
    'event dispatcher stopped': 'Part of stopping the server.',
    'job finished': 'A scheduled job succeeded.',
    'job skipped': 'The previous run of a job has not finished.',
    'feed run': 'A feed was read. `status` says whether a campaign was created.',
    'job started': 'A scheduled job started.',
    'job state not saved': 'The state shown by `postroad jobs` could not be written.',
    'limits not shared':
      'PostgreSQL did not answer. Until it does, each node allows its equal share of rate limits.',
    'login failures not shared':
      'PostgreSQL did not answer. Until it does, each node counts failed logins separately.',
    'sites not shared':
      'PostgreSQL did not answer. Until it does, shares of sites and destinations stay as they are.',
    'page answered': 'A public page was served.',
    'request answered': 'An API request succeeded.',
    'smtp connection turned away': 'A listener was full, or the address had too many connections.',
    'smtp session ended': 'One line per SMTP session.',
  },
} as const satisfies Record<string, Readonly<Record<string, string>>>

export type LogEvent<Level extends keyof typeof LOG_EVENTS> = keyof (typeof LOG_EVENTS)[Level]

const LEVEL_MEANINGS = {
  error: 'Something failed that an operator should look at.',
  warn: 'Something works differently from what was intended.',
  info: 'What happened to mail, domains, requests and the server.',
  debug: 'Details for tracing a problem (`log.level = "debug"`).',
} as const satisfies Record<keyof typeof LOG_EVENTS, string>

/** The text of `docs/logs.md`. */
export function logsMarkdown(): string {
  const levels = Object.entries(LOG_EVENTS) as [keyof typeof LOG_EVENTS, Record<string, string>][]
  const sections = levels.map(([level, events]) => {
    const rows = Object.entries(events)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([event, meaning]) => `| \`${event}\` | ${meaning} |`)
    return `## ${level}\n\n${LEVEL_MEANINGS[level]}\n\n| event | meaning |\n|---|---|\n${rows.join('\n')}\n`
  })
  return `<!-- Generated from src/world/log-events.ts: node build/src/cli/write-generated.js -->

# Log events

Each line of the log is one event with its fields: JSON, or text with \`log.format = "text"\`. Event names are stable, so you
can match on them:

\`\`\`sh
journalctl -u postroad -o cat | grep '"event":"message bounced"'
journalctl -u postroad -p warning     # warn and error
\`\`\`

Fields named \`error\` carry the cause as the system reported it. Secrets and message bodies are never logged.

${sections.join('\n')}`
}
