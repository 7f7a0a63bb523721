package import SluiceCore

/// librdkafka's own settings, passed on as they are: `security.protocol`, `sasl.*`, `ssl.*` and whatever else a deployment needs.
///
/// Values may be secrets: no error shows one.
package struct KafkaSettings: Hashable, Sendable {
    struct Setting: Hashable, Sendable {
        var name: String
        var value: String
        /// Of the file, from 1; nil: from nowhere.
        var line: Int?
    }

    /// In the order of the file.
    private(set) var all: [Setting] = []
    private var file: String?

    /// Reads librdkafka's properties: `name=value` lines, blank ones, and comments that begin with `#`.
    /// - Parameter file: what errors call the text.
    /// - Throws: `configInvalid` with the line.
    package init(parsing text: String, file: String) throws(SluiceError) {
        self.file = file
        for (index, line) in text.split(omittingEmptySubsequences: false, whereSeparator: { $0 == "\n" || $0 == "\r\n" }).enumerated() {
            let line = Self.trimmed(line)
            guard !line.isEmpty, !line.hasPrefix("#") else { continue }
            try add(line, number: index + 1)
        }
    }

    private mutating func add(_ line: Substring, number: Int) throws(SluiceError) {
        let place = "\(file ?? ""):\(number)"
        guard let equals = line.firstIndex(of: "=") else {
            throw SluiceError(
                .configInvalid, "\(place): this line has no '='.", fix: "Write name=value, each setting on a line of its own.")
        }
        let name = Self.trimmed(line[..<equals])
        // A line of a key that was broken into several may have a '=' too; it must not get into a log as the name of a setting.
        guard !name.isEmpty, name.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == 46 || $0 == 95 }) else {
            throw SluiceError(
                .configInvalid, "\(place): what stands before '=' is no name of a setting.",
                fix: "Write name=value, in lower case, on one line.")
        }
        if let first = all.first(where: { $0.name == name })?.line {
            throw SluiceError(.configInvalid, "\(place): the setting \(name) is in line \(first) already.", fix: "Remove one of them.")
        }
        all.append(Setting(name: String(name), value: String(Self.trimmed(line[line.index(after: equals)...])), line: number))
    }

    private static func trimmed(_ text: Substring) -> Substring {
        let start = text.drop(while: \.isWhitespace)
        return start[..<(start.lastIndex { !$0.isWhitespace }.map(start.index(after:)) ?? start.startIndex)]
    }

    /// Takes the brokers' addresses out, which are no setting of a client like others.
    /// - Returns: the addresses, and where they stand.
    package mutating func takeServers() throws(SluiceError) -> (servers: String, place: String)? {
        let found = all.filter { Self.servers.contains($0.name) }
        guard let first = found.first else { return nil }
        if let second = found.dropFirst().first {
            throw SluiceError(
                .configInvalid, "\(place(of: second))the setting \(second.name) names brokers that \(first.name) names already.",
                fix: "Remove one of them.")
        }
        guard !first.value.isEmpty else {
            throw SluiceError(
                .configInvalid, "\(place(of: first))the setting \(first.name) is empty.", fix: "Write host:port, or remove the line.")
        }
        all.removeAll { $0 == first }
        return (first.value, place(of: first))
    }

    /// What the library is given, in this order.
    package var pairs: [(name: String, value: String)] { all.map { ($0.name, $0.value) } }

    // MARK: What may be set

    private static let servers: Set<String> = ["bootstrap.servers", "metadata.broker.list"]

    /// Settings that callers may not pass through: the guarantees (G1, G2) or this module's inner workings hang on them.
    private static let reserved: Set<String> =
        servers.union([
            // What an acknowledgement means, and the order of records.
            "enable.idempotence", "acks", "request.required.acks", "retries", "message.send.max.retries", "queuing.strategy",
            "enable.gapless.guarantee", "transactional.id", "partitioner", "delivery.report.only.error", "test.mock.num.brokers",
            // What is read, and from where.
            "group.id", "enable.auto.commit", "auto.commit.enable", "enable.auto.offset.store", "auto.offset.reset", "offset.store.method",
            "offset.store.path", "offset.store.sync.interval.ms", "isolation.level", "check.crcs", "topic.blacklist",
            "allow.auto.create.topics", "enable.partition.eof",
            // The bounds of waiting and of memory, which this module keeps.
            "message.timeout.ms", "delivery.timeout.ms", "queue.buffering.max.messages", "queue.buffering.max.kbytes",
            // What the library does with this process.
            "enabled_events", "log.queue", "statistics.interval.ms", "plugin.library.paths", "interceptors", "internal.termination.signal",
        ])

    /// - Throws: `configInvalid` for a setting that cannot be passed through.
    func check() throws(SluiceError) {
        for setting in all {
            if Self.reserved.contains(setting.name) {
                throw SluiceError(
                    .configInvalid, "\(place(of: setting))the Kafka setting \(setting.name) cannot be changed.",
                    fix: "Remove it: durability, order or bounds depend on it.")
            }
            // The library would wait for tokens from its caller for ever.
            if setting.name.hasPrefix("sasl.mechanism"), setting.value.uppercased() == "OAUTHBEARER" {
                throw SluiceError(
                    .configInvalid, "\(place(of: setting))the Kafka setting \(setting.name) names OAUTHBEARER, which is not supported.",
                    fix: "Use SCRAM-SHA-512, SCRAM-SHA-256, PLAIN, GSSAPI, or a client certificate.")
            }
        }
    }

    // MARK: Errors

    /// A setting that the library does not take.
    /// - Parameter reason: the library's words; nil: it does not know the name.
    func refusal(of name: String, reason: String?) -> SluiceError {
        let place = all.first { $0.name == name }.map(place(of:)) ?? ""
        guard let reason else {
            return SluiceError(
                .configInvalid, "\(place)this librdkafka (\(libraryVersion)) knows no setting \(name).",
                fix: "Correct its spelling or remove it; librdkafka's CONFIGURATION.md lists them all.")
        }
        return SluiceError(
            .configInvalid, "\(place)the Kafka setting \(name) is refused: \(withoutValues(reason)).", fix: "Correct or remove it.")
    }

    /// Settings that the library does not take together, or files of theirs that it cannot use.
    func refusal(reason: String) -> SluiceError {
        let named = all.filter { reason.contains($0.name) }.max { $0.name.utf8.count < $1.name.utf8.count }
        let place = named.map(place(of:)) ?? file.map { "\($0): " } ?? ""
        return SluiceError(.configInvalid, "\(place)a Kafka client cannot be made: \(withoutValues(reason)).")
    }

    private func place(of setting: Setting) -> String {
        guard let file, let line = setting.line else { return "" }
        return "\(file):\(line): "
    }

    /// The library quotes what it refuses.
    private func withoutValues(_ words: String) -> String {
        var words = words
        for value in all.map(\.value).filter({ !$0.isEmpty }).sorted(by: { $0.utf8.count > $1.utf8.count }) {
            for range in words.ranges(of: value).reversed() where Self.isWord(range, of: words) { words.replaceSubrange(range, with: "…") }
        }
        return String(Self.trimmed(words[...]).reversed().drop { $0 == "." }.reversed())
    }

    /// Whether it stands alone: `ssl` is a value, and no word of the name `ssl.ca.location`.
    private static func isWord(_ range: Range<String.Index>, of text: String) -> Bool {
        func isInside(_ rest: some Sequence<Character>) -> Bool {
            rest.first { !"._".contains($0) }.map { $0.isLetter || $0.isNumber } ?? false
        }
        return !isInside(text[..<range.lowerBound].reversed()) && !isInside(text[range.upperBound...])
    }
}

extension KafkaSettings: ExpressibleByDictionaryLiteral {
    package init(dictionaryLiteral elements: (String, String)...) {
        all = elements.map { Setting(name: $0.0, value: $0.1) }
    }
}
