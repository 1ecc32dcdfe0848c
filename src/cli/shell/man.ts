/**
 * The manual page postroad(1), generated from the command tree.
 *
 * Printed by `postroad man` and installed by the Debian package. Standard: man(7). Pure.
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
      'Postroad is a mail server appliance in a single process: REST API, SMTP submission, durable queue, and DKIM-signed delivery.',
    ),
    ...paragraph(
      'serve runs the server; the unit postroad.service uses it. The other commands work on its data and can be used while it is running. With --json, output has the form of the REST API, and errors are printed to standard error as {"error": {"code", "message"}}. A file named - is standard input.',
    ),
    '.SH COMMANDS',
    ...groups.flatMap(commandLines),
    '.SH EXIT STATUS',
    ...named('0', 'success'),
    ...named('1', 'failure, or a check found a problem'),
    ...named('2', 'invalid command line or configuration'),
    '.SH ENVIRONMENT',
    ...named('POSTROAD_CONFIG', 'the configuration file, if --config is not given'),
    ...named('POSTROAD_SECTION_KEY', 'overrides a configuration key, e.g. POSTROAD_LOG_LEVEL=debug'),
    '.SH FILES',
    ...named(
      '/etc/postroad/postroad.toml',
      'the configuration; "postroad config reference" explains each key',
    ),
    ...named('/var/lib/postroad', 'data (data_dir): mail, queue, contacts, keys'),
    ...named('/var/backups/postroad', 'nightly backups made by postroad-backup.timer'),
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
      // Options of all commands are described above.
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

/** Escapes text for roff, including requests at the start of a line, and keeps hyphens copyable. */
function roff(text: string): string {
  return text
    .replace(/\\/g, '\\e')
    .replace(/-/g, '\\-')
    .replace(/^([.'])/gm, '\\&$1')
    .replace(/\n+/g, '\n.br\n')
}
