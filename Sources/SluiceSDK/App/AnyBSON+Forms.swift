import Foundation
import SluiceCore
import SluiceValues

/// Forms of extended JSON that objects of a Realm never contain.
extension AnyBSON {
    init?(form members: [JSON.Member]) {
        guard members.count == 1, let form = members.first else { return nil }
        switch form.key {
        // Objects of a Realm have one size of integers.
        case "$numberInt":
            guard let number = form.value.string.flatMap({ Int32($0) }) else { return nil }
            self = .int32(number)
        case "$minKey": self = .minKey
        case "$maxKey": self = .maxKey
        case "$timestamp":
            guard let seconds = form.value["t"]?.int, form.value["i"]?.int != nil else { return nil }
            self = .timestamp(Date(timeIntervalSince1970: Double(seconds)))
        case "$regularExpression":
            guard let pattern = form.value["pattern"]?.string, let options = form.value["options"]?.string,
                let expression = try? NSRegularExpression(pattern: pattern, options: Self.options(options))
            else { return nil }
            self = .regex(expression)
        default: return nil
        }
    }

    private static let letters: [(letter: Character, option: NSRegularExpression.Options)] = [
        ("i", .caseInsensitive), ("m", .anchorsMatchLines), ("s", .dotMatchesLineSeparators), ("x", .allowCommentsAndWhitespace),
    ]

    private static func options(_ text: String) -> NSRegularExpression.Options {
        letters.reduce(into: []) { if text.contains($1.letter) { $0.insert($1.option) } }
    }

    /// The letters of the options, in alphabetical order as the form requires.
    static func text(_ options: NSRegularExpression.Options) -> String {
        String(letters.filter { options.contains($0.option) }.map { $0.letter })
    }

    /// Whole seconds since 1970, rounded down and clamped to the 32 unsigned bits of a timestamp.
    static func seconds(_ date: Date) -> Int64 {
        Int64(max(0, min(Double(UInt32.max), date.timeIntervalSince1970.rounded(.down))))
    }
}

/// The BSON value that sorts before all others.
public struct MinKey: Hashable, Sendable {
    public init() {}
}

/// The BSON value that sorts after all others.
public struct MaxKey: Hashable, Sendable {
    public init() {}
}
