/** A body that is already JSON, sent unchanged: a payload keeps every digit, and each attempt sends the same bytes. */
export class JsonText {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}
