/** Recognises credentials by the name of their field, by their form, and by an assignment such as `password=…` in a text. */

/** Parts of names that are secret anywhere in a name. SECRET_NAME also looks at whole names and their ends. */
const PARTS =
  'pass(?:w|[-_. ]?(?:word|phrase|code))|secret|(?:api|access|account|private|signing|cryption)[-_. ]?key|authorization|credential|cookie|-signature'
const WORDS = 'jwt|otp|auth|cv[vc]2?'
const SECRET_NAME = new RegExp(`${PARTS}|^(?:bearer|(?:x-|--?)?(?:${WORDS}))$|token$`, 'i')
/** `pass` and `pwd` only as separate words: DB_PASS and dbPass, but not compass. */
const SECRET_WORD = /(?:^|[-_. a-z\d])P(?:ass|wd)$|(?:^|[-_. ])(?:pass|pwd|PASS|PWD)$/
/** Texts under such a name are secrets; numbers are usage counters. */
const COUNTER_NAME = /tokens$/i
/** A longer text is a name only without other characters, such as spaces. A shorter one is a name only without quotes. */
const NAME_CHARS = 64
const NAME = /^[\w.-]*$/

/** `counter`: its numbers are no secrets, other values are. */
export type NameKind = 'secret' | 'counter' | 'plain'

export function kindOfName(name: string): NameKind {
  if (name.length > NAME_CHARS ? !NAME.test(name) : name.includes('"')) return 'plain'
  if (SECRET_NAME.test(name) || SECRET_WORD.test(name)) return 'secret'
  return COUNTER_NAME.test(name) ? 'counter' : 'plain'
}

export const CREDENTIAL_MARK = '[masked:credential]'

/** Well-known forms: their beginning up to a rare character, and the rest. */
const FORMS = [
  ['-----BEGIN', ' [A-Z0-9 ]{0,30}PRIVATE KEY-----(?:[^-]|-(?!----END))*'],
  ['A[KS]I', String.raw`A[A-Z0-9]{16}\b`],
  ['(?:sk|xai|pypi)-', String.raw`[\w-]{16,}`],
  ['(?:[sr]k_(?:live|test)|whsec|npm|gsk|gh[pousr]|github_pat|hf|tacho(?:-[a-z]{1,16})?)_', String.raw`\w{16,}`],
  ['(?:glpat|xox[abeoprs])-', '[A-Za-z0-9-]{10,}'],
  ['AI', String.raw`za[\w-]{30,}`],
  [String.raw`(?:ya29|SG)\.`, String.raw`[\w-]{16,}`],
  // JSON Web Tokens: base64 of `{"`.
  ['eyJ', String.raw`[\w.-]{20,}`],
] as const

export const CREDENTIAL_FORMS = [
  // A form does not match inside a word, but an escape such as \n may come before it.
  ...FORMS.map(([begin, rest]) => new RegExp(String.raw`(?<!(?<!\\)\w)${begin}${rest}`, 'g')),
  // A word without a digit or sign is prose, such as "basic understanding".
  /\b(?:Bearer|Basic)\s{1,4}(?=\S{0,64}[\d+/=_])[\w+/=.~-]{12,}/gi,
  // The password in an address, or the only text before its `@`.
  /(?<=:\/\/[^\s/:@[]{0,64}:)[^\s/"'`]{1,1024}(?=@)/g,
  /(?<=https?:\/\/)[^\s/:@?#"'`]{1,1024}(?=@)/gi,
  /(?<=curl\s.{0,300}-u(?:ser)?[\s=]{0,4}["']?[^\s:"']{1,64}:)[^\s"'`]{1,1024}/g,
]

/** Characters that may stand between a name and its sign, in JSON text that may be encoded several times. */
const BETWEEN = String.raw`(?:[\s"'\x60\\]|(?<=\\)[nrtvf])`
/** Follows a name: the sign that assigns its value, or the end of a JSON string that is the name. */
const SIGN = String.raw`${BETWEEN}{0,80}(?:[:=>]|(?<=")[,}\]])|${BETWEEN}{80}`
/**
 * Every event is searched with these two. They match all JSON text in which this file recognises a credential, and few texts
 * that only mention passwords. Each alternative of the first begins with a letter that is rare in texts, and looks around it.
 */
export const MAYBE_NAMED = new RegExp(
  [
    // Anywhere in a name.
    String.raw`(?:pass(?:w|[-_. ]?(?:word|phrase|code))|c(?:(?<=sec)ret|redential)|k(?:(?<=(?:api|access|account|private|signing|cryption)[-_. ]?k)ey|(?<=cook)ie)|(?<=a)uthorization|-signature)(?:[\w.-]{64}|[\w.-]{0,63}(?:${SIGN})|[^"]{0,${NAME_CHARS}}"(?<="[^"]{0,${NAME_CHARS}}")${BETWEEN}{0,80}[:,}\]])`,
    // Only at the end of a name.
    String.raw`(?:p(?:ass|wd|(?<=otp))|jwt|(?<=a)uth|(?<=c)v[vc]2?|bearer|k(?<=tok)en)(?:${SIGN})`,
    // Counts of tokens are no secrets.
    String.raw`k(?<=tok)ens${BETWEEN}{0,80}(?:[:=>]{1,2}(?!\s{0,9}\d[\d.,]{0,20}(?!\w))|(?<=${BETWEEN}{80}))`,
    String.raw`b(?:earer|asic)(?:\s|\\|(?<=\\)[nrtvf]){1,40}(?=\S{0,64}[\d+/=_])[\w+/=.~-]{12}`,
    String.raw`curl[\s\\]`,
    // An option ends with a space or a comma.
    String.raw`--\w[\w-]{0,63}(?<=${PARTS}|${WORDS}|pass|pwd|bearer|tokens?)[\w-]{0,63}\\{0,31}["'\x60]?(?:[\s,]|\\[nrtvf])`,
  ].join('|'),
  'i',
)
export const MAYBE_FORM = new RegExp(
  String.raw`-(?:(?<=-----)BEGIN|(?<=(?:sk|xai|pypi|glpat|xox[abeoprs])-)[\w-]{10})|_(?<=[sr]k_(?:live|test)_|whsec_|npm_|gsk_|gh[pousr]_|github_pat_|hf_|tacho(?:-[a-z]{1,16})?_)\w{10}|I(?<=A[KS]I)A|I(?<=AI)za|J(?<=eyJ)[\w.-]{20}|9(?<=ya29)\.|G(?<=SG)\.|://[^/@]{0,1100}@`,
)

export const OTHER_FORM = /bearer|basic|curl/i

/** A name, perhaps quoted, with the sign that assigns; an option ends with a space. The host of an address is no name. A long word is looked at once. */
const NAMED =
  /(?<![\w.-]|\/\/)((?:(?:api|access|account|private|signing|encryption|pass) )?[\w.-]+)(?![\w.-])\\{0,15}["'`]?(?:\s*([:=]{1,2}>?|(?<=<[\w.:-]{1,64})>)|(?<=(?<![\w.-])--\w[\w-]{0,63}\\{0,15}["'`]?)[\s,](?!\s{0,9}-))\s*/gi
/** A quoted value up to its closing quote, which has as many backslashes as the opening one. */
const QUOTED = /(\\{0,15})(["'`])(?:(?!(?<!\\)\1\2)[^])*/y
/** A list or an object, to its first end. */
const NESTED = /[[{][^\]}]*[\]}]?/y
const BARE = /(?:[^\s"'`&,;\\]|\\(?!["'`nrt]))+/y
/** The value of a header may have spaces and semicolons, and may follow its name in a list. */
export const HEADER_NAME = /^(?:(?:set-)?cookie|(?:proxy-)?authorization|(?:x|-)-[\w-]+)$/i
/** The rest of a line, with the quoted parameters of a header. A quote after the padding of Base64 ends the value. */
const LINE = /(?:=\\{0,15}"(?=[^\s,;)}\]\\])[^\r\n"\\]{0,1024}\\{0,15}"?|[^\r\n"'`\\])+/y
/** A block of YAML: the lines after `|` or `>` that are indented. */
const BLOCK = /[|>](?:.|[\r\n]{1,9}[ \t])+/y
const ELEMENT = /(?:<!)?[^<]{1,9999}(?=<\/)/y
/** Assigned, but no secret. */
const HARMLESS = /^(?:true|false|null|undefined)$/

/** `kindOf` judges names. Takes each match once, so its time is linear. */
export function maskAssignments(text: string, kindOf: (name: string) => NameKind): string {
  let masked = ''
  let done = 0
  for (const match of text.matchAll(NAMED)) {
    const [found, name = '', sign = ''] = match
    if (match.index < done) continue
    const kind = kindOf(name)
    if (kind === 'plain') continue
    const start = match.index + found.length
    const isHeader = HEADER_NAME.test(name) && sign === ':'
    const quoted = valueAt(QUOTED, text, start)
    const bare = sign === '>' ? ELEMENT : isHeader ? LINE : BARE
    const value = quoted ?? valueAt(NESTED, text, start) ?? valueAt(BLOCK, text, start) ?? valueAt(bare, text, start)
    if (!value) continue
    const [whole, slashes = ''] = value
    const opening = quoted ? slashes.length + 1 : 0
    const content = whole.slice(opening)
    if (content === '' || (!quoted && HARMLESS.test(content))) continue
    if (kind === 'counter' && isCount(content)) continue
    masked += `${text.slice(done, start + opening)}${CREDENTIAL_MARK}`
    done = start + whole.length
  }
  return masked + text.slice(done)
}

function valueAt(pattern: RegExp, text: string, index: number): RegExpExecArray | null {
  pattern.lastIndex = index
  return pattern.exec(text)
}

/**
 * Whether a text begins with a number, such as `-5` or `1e3`, or the mark `[NaN]`. These stay, so that the service can report
 * numbers that it cannot count.
 */
export function isCount(text: string): boolean {
  return /^\[?-?(\d[\d.,]{0,20}(e[+-]?\d{1,9})?|Infinity|NaN)(?!\w)/i.test(text)
}
