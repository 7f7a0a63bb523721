/// The words of a TEXT search. A text must satisfy all terms: a word, a word's beginning (`word*`), or a word's absence (`-word`).
///
/// A word is a run of ASCII and Latin-1 letters and digits. Every other character separates words. Case and diacritics are ignored.
package struct TextSearch: Hashable, Sendable {
    package var terms: [Term]

    package struct Term: Hashable, Sendable {
        /// The folded word, see `words`.
        package var word: [UInt8]
        package var isPrefix: Bool
        package var isExcluded: Bool
    }

    init(_ text: String) {
        terms = []
        for piece in text.utf8.split(whereSeparator: { $0 == 32 || ($0 >= 9 && $0 <= 13) }) {
            let isExcluded = piece.first == UInt8(ascii: "-")
            let isPrefix = piece.last == UInt8(ascii: "*")
            let words = TextSearch.words(piece)
            for (index, word) in words.enumerated() {
                terms.append(Term(word: word, isPrefix: isPrefix && index == words.count - 1, isExcluded: isExcluded))
            }
        }
    }

    var isEmpty: Bool { terms.isEmpty }

    func matches(_ text: String) -> Bool {
        let words = TextSearch.words(text.utf8)
        return terms.allSatisfy { term in
            words.contains { term.isPrefix ? $0.starts(with: term.word) : $0 == term.word } != term.isExcluded
        }
    }

    /// Returns the words of a text in Latin-1. Letters fold to lower-case ASCII if possible.
    static func words(_ utf8: some Sequence<UInt8>) -> [[UInt8]] {
        var words: [[UInt8]] = []
        var word: [UInt8] = []
        for scalar in String(decoding: Array(utf8), as: UTF8.self).unicodeScalars {
            if let letter = folded(scalar) {
                word.append(letter)
            } else if !word.isEmpty {
                words.append(word)
                word = []
            }
        }
        if !word.isEmpty { words.append(word) }
        return words
    }

    private static func folded(_ scalar: Unicode.Scalar) -> UInt8? {
        switch scalar {
        case "a"..."z", "0"..."9": UInt8(scalar.value)
        case "A"..."Z": UInt8(scalar.value) | 0x20
        case "\u{C0}"..."\u{FF}": latin[Int(scalar.value) - 0xC0]
        default: nil
        }
    }

    /// The folded forms of U+00C0 to U+00FF. Letters that do not decompose to an ASCII letter become lower-case.
    private static let latin: [UInt8?] = {
        let plain = Array("aaaaaa\u{1}ceeeeiiii\u{1}nooooo\u{0}ouuuuy\u{1}\u{1}".utf8)
        return (0..<64).map { index in
            switch plain[index % 32] {
            case 0: nil
            case 1: index == 31 ? 0xDF : index == 63 ? UInt8(ascii: "y") : UInt8(0xE0 + index % 32)
            case let letter: letter
            }
        }
    }()
}
