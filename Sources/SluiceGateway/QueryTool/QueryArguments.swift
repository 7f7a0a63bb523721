package import SluiceCore

/// Arguments of a query as the command line has them: one JSON text each, in extended JSON.
package enum QueryArguments {
    /// - Throws: `badJSON` naming the argument by its number from 0, as `$0` does.
    package static func read(_ texts: [String]) throws(SluiceError) -> [Value] {
        var values: [Value] = []
        for (number, text) in texts.enumerated() {
            let json: JSON
            do throws(JSON.Mistake) { json = try JSON.located(Array(text.utf8)) } catch {
                throw SluiceError(
                    .badJSON, "The argument $\(number), `\(text)`, is no JSON: column \(error.column): \(error.problem).",
                    fix: #"Strings need quotes of their own: --arg '"text"'; dates and ids are {"$date": …}, {"$oid": …}, {"$uuid": …}."#)
            }
            if let form = malformed(json) {
                throw SluiceError(
                    .badJSON, "The argument $\(number), `\(text)`, has no value of '\(form)'.", fix: "Correct what stands behind it.")
            }
            values.append(ExtendedJSON.value(json))
        }
        return values
    }

    private static let forms: Set<String> = [
        "$oid", "$uuid", "$date", "$numberInt", "$numberLong", "$numberDouble", "$numberDecimal", "$binary",
    ]

    /// The first extended form that does not hold what it says: a mistake here, not a dictionary.
    private static func malformed(_ json: JSON) -> String? {
        switch json {
        case .array(let elements): return elements.lazy.compactMap(malformed).first
        case .object(let members):
            guard members.count == 1, forms.contains(members[0].key) else { return members.lazy.compactMap { malformed($0.value) }.first }
            if case .dictionary = ExtendedJSON.value(json) { return members[0].key }
            return nil
        default: return nil
        }
    }
}
