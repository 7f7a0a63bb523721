// JSON and Extended JSON under test by any bytes: they are read, written and read again. Nothing may crash or disagree with itself.
// `make fuzz` runs it.

import SluiceCore
import SluiceValues

/// Reads JSON. If it is valid, it must read back from its text, and so must the value that it is in Extended JSON.
func run(_ bytes: [UInt8]) {
    guard let json = try? JSON.parse(bytes) else {
        if case .failure(let error) = Result(catching: { () throws(JSONError) in try JSON.located(bytes) }), "\(error)".isEmpty {
            fatalError("an error without a text")
        }
        return
    }
    let text = json.text
    guard let again = try? JSON.parse(text), again.text == text else { fatalError("the text reads back as another one: \(text)") }
    // A date beyond the years of the text form is cut once.
    let extended = ExtendedJSON.json(ExtendedJSON.value(json))
    if ExtendedJSON.json(ExtendedJSON.value(extended)).text != extended.text { fatalError("the value changes again: \(extended.text)") }
}

/// The name of the inputs in the last line of the output.
let tested = "JSON texts"
