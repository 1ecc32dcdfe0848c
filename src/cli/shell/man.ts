/**
 * The manual page postroad(1), from the tree of commands: what `--help` says of each, in one place.
 *
 * Printed by `postroad man` and put into the Debian package. Standard: man(7). Pure.
 */
import { everyDescribed, type DescribedCommand } from './command-tree.js'

export function manualPage(program: DescribedCommand, version: string): string {
  const groups = program.commands.flatMap(everyDescribed).filter(({ commands }) => commands.length === 0)
  return [
    `.TH POSTROAD 1 "" ${roff(`"Postroad ${version}"`)} "User Commands"`,
    '.nh',
    '.SH NAME',
    `postroad \\- ${roff(program.description)}`,
    '.SH SYNOPSIS',
    '.B postroad',
    roff('COMMAND [--config FILE] [--json] ...'),
    '.SH DESCRIPTION',
    ...paragraph(
      'Postroad is a mail server appliance in one process: a REST API, submission by SMTP, a durable queue, and delivery with DKIM signatures.',
    ),
    ...paragraph(
      'serve runs it, as the unit postroad.service does. The other commands work on its data, beside the server while it runs, and print what they found; with --json in the form of the REST API, and what goes wrong as {"error": {"code", "message"}} on standard error. A file named - is standard input.',
    ),
    '.SH COMMANDS',
    ...groups.flatMap(commandLines),
    '.SH EXIT STATUS',
    ...named('0', 'all went well'),
    ...named('1', 'something failed, or something was found wrong'),
    ...named('2', 'the command line or the configuration is wrong'),
    '.SH ENVIRONMENT',
    ...named('POSTROAD_CONFIG', 'the configuration file, where --config names none'),
    ...named(
      'POSTROAD_SECTION_KEY',
      'stands in place of a key of the configuration, e.g. POSTROAD_LOG_LEVEL=debug',
    ),
    '.SH FILES',
    ...named(
      '/etc/postroad/postroad.toml',
      'the configuration; "postroad config reference" explains each key',
    ),
    ...named('/var/lib/postroad', 'data (data_dir): mail, queue, contacts, keys'),
    ...named('/var/backups/postroad', 'nightly backups, by postroad-backup.timer'),
    '.SH SEE ALSO',
    roff('systemctl(1), journalctl(1)'),
    '',
  ].join('\n')
}

function commandLines({ path, usage, description, options }: DescribedCommand): string[] {
  return [
    '.TP',
    `.B ${roff(['postroad', ...path].join(' '))} ${roff(usage)}`,
    roff(sentence(description)),
    ...options
      // What all have was said above.
      .filter(({ long }) => !['--help', '--json', '--config'].includes(long))
      .flatMap(option => ['.RS', '.TP', `.B ${roff(option.flags)}`, roff(option.description), '.RE']),
  ]
}

function named(term: string, text: string): string[] {
  return ['.TP', `.B ${roff(term)}`, roff(sentence(text))]
}

function paragraph(text: string): string[] {
  return ['.PP', roff(text)]
}

function sentence(text: string): string {
  return /[.!?]$/.test(text) ? text : `${text}.`
}

/** Text that stands for itself: no escapes, no requests at the start of a line, and hyphens that can be copied. */
function roff(text: string): string {
  return text
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/^([.'])/gm, '\\&$1')
    .replace(/\n+/g, '\n.br\n')
}
