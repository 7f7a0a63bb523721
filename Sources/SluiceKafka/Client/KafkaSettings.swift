package import SluiceCore

/// Settings of librdkafka, passed through unchanged: `security.protocol`, `sasl.*`, `ssl.*` and others that a deployment needs.
///
/// Values may be secrets, so no error shows one.
package struct KafkaSettings: Hashable, Sendable {
    struct Setting: Hashable, Sendable {
        var name: String
        var value: String
        /// The line in the file, from 1; nil if the setting is from no file.
        var line: Int?
    }

    /// The settings in the order of the file.
    private(set) var all: [Setting] = []
    private var file: String?

    /// Parses librdkafka's properties: `name=value` lines, blank lines, and comments that begin with `#`.
    ///
    /// - Parameter file: The name of the text in errors.
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
        // A line of a wrapped key may contain '=', too. It must not reach a log as the name of a setting.
        guard !name.isEmpty, name.utf8.allSatisfy({ (97...122).contains($0) || (48...57).contains($0) || $0 == 46 || $0 == 95 }) else {
            throw SluiceError(
                .configInvalid, "\(place): the text before '=' is not a name of a setting.",
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

    /// Removes the brokers' addresses, which are not a client setting like others.
    ///
    /// - Returns: The addresses, and their place as a prefix for errors; nil if they are not set.
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

    /// The settings for the library, in order.
    package var pairs: [(name: String, value: String)] { all.map { ($0.name, $0.value) } }

    /// `true` if the brokers are reached by TLS or SASL.
    package var hasSecurity: Bool { all.contains { $0.name == "security.protocol" && $0.value.lowercased() != "plaintext" } }

    /// The account's name in the brokers' access lists, if they do not map it; nil if a certificate or a ticket decides on it.
    package var principal: String? {
        func value(_ names: String...) -> String? { all.last { names.contains($0.name) }?.value }
        let security = value("security.protocol")?.lowercased() ?? "plaintext"
        guard security.hasPrefix("sasl") else {
            return value("ssl.certificate.location", "ssl.keystore.location", "ssl.certificate.pem") == nil ? "User:ANONYMOUS" : nil
        }
        let mechanism = value("sasl.mechanism", "sasl.mechanisms")?.uppercased() ?? "GSSAPI"
        guard mechanism == "PLAIN" || mechanism.hasPrefix("SCRAM-") else { return nil }
        return value("sasl.username").map { "User:\($0)" }
    }

    // MARK: Reserved settings

    private static let servers: Set<String> = ["bootstrap.servers", "metadata.broker.list"]

    /// The settings that callers may not pass: delivery guarantees or the internals of this module depend on them.
    private static let reserved: Set<String> =
        servers.union([
            // The meaning of an acknowledgement, and the order of records.
            "enable.idempotence", "acks", "request.required.acks", "retries", "message.send.max.retries", "queuing.strategy",
            "enable.gapless.guarantee", "transactional.id", "partitioner", "delivery.report.only.error", "test.mock.num.brokers",
            // The records that are read, and their start.
            "group.id", "enable.auto.commit", "auto.commit.enable", "enable.auto.offset.store", "auto.offset.reset", "offset.store.method",
            "offset.store.path", "offset.store.sync.interval.ms", "isolation.level", "check.crcs", "topic.blacklist",
            "allow.auto.create.topics", "enable.partition.eof",
            // The bounds of waiting and of memory, which this module enforces.
            "message.timeout.ms", "delivery.timeout.ms", "queue.buffering.max.messages", "queue.buffering.max.kbytes",
            // The effects of the library on this process.
            "enabled_events", "log.queue", "statistics.interval.ms", "plugin.library.paths", "interceptors", "internal.termination.signal",
        ])

    /// Checks that every setting may be passed through.
    ///
    /// - Throws: `configInvalid` for one that may not.
    func check() throws(SluiceError) {
        for setting in all {
            if Self.reserved.contains(setting.name) {
                throw SluiceError(
                    .configInvalid, "\(place(of: setting))the Kafka setting \(setting.name) cannot be changed.",
                    fix: "Remove it: durability, order or bounds depend on it.")
            }
            // The library would wait forever for tokens from its caller.
            if setting.name.hasPrefix("sasl.mechanism"), setting.value.uppercased() == "OAUTHBEARER" {
                throw SluiceError(
                    .configInvalid, "\(place(of: setting))the Kafka setting \(setting.name) names OAUTHBEARER, which is not supported.",
                    fix: "Use SCRAM-SHA-512, SCRAM-SHA-256, PLAIN, GSSAPI, or a client certificate.")
            }
        }
    }

    // MARK: Errors

    /// Returns the error of a setting that the library rejects.
    ///
    /// - Parameter reason: The library's text; nil if it does not know the name.
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

    /// Returns the error of settings that the library rejects in combination, or whose files it cannot use.
    func refusal(reason: String) -> SluiceError {
        let named = all.filter { reason.contains($0.name) }.max { $0.name.utf8.count < $1.name.utf8.count }
        let place = named.map(place(of:)) ?? file.map { "\($0): " } ?? ""
        return SluiceError(.configInvalid, "\(place)a Kafka client cannot be created: \(withoutValues(reason)).")
    }

    private func place(of setting: Setting) -> String {
        guard let file, let line = setting.line else { return "" }
        return "\(file):\(line): "
    }

    /// Returns the library's text without the values that it quotes.
    private func withoutValues(_ words: String) -> String {
        var words = words
        // The longest first, so that a value inside another one leaves no rest of it.
        for value in all.map(\.value).filter({ !$0.isEmpty }).sorted(by: { $0.utf8.count > $1.utf8.count }) {
            for range in words.ranges(of: value).reversed() where Self.isWord(range, of: words) { words.replaceSubrange(range, with: "…") }
        }
        return String(Self.trimmed(words[...]).reversed().drop { $0 == "." }.reversed())
    }

    /// Returns `true` if the range is a word of its own. A value `ssl` is no part of the name `ssl.ca.location`.
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
