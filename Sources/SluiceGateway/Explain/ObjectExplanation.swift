package import SluiceCore
import SluicePipeline
import SluicePorts
import SluicePostgres
import SluiceQuery
import SluiceValues

/// The reasons why a client replica has an object or lacks it.
struct ObjectExplanation: Sendable {
    /// A condition, with the clauses that the object does not satisfy.
    private struct Verdict {
        var text: String
        var matches: Bool
        var failing: [String]

        init(_ text: String, _ predicate: Predicate, _ row: Row?) {
            self.text = text
            matches = row.map { predicate.matches($0) } ?? false
            let clauses = if case .and(let parts) = predicate.bound { parts } else { [predicate.bound] }
            failing = clauses.map { Predicate(type: predicate.type, bound: $0) }.filter { clause in
                row.map { !clause.matches($0) } ?? false
            }
            .map(\.canonicalText)
        }

        var json: JSON {
            ["query": .string(text), "matches": .bool(matches), "failing": .array(failing.map { .string($0) })]
        }
    }

    private let subject: ObjectExplainer.Subject
    private let user: String
    /// The properties that the user may not read. They count as null in the user's queries.
    private var hidden: Set<Int> = []
    /// The role that allows the user to read objects of the class, as the end of a sentence.
    private var granted = ""
    private var facts: [JSON.Member] = []
    /// One sentence each, the decisive reasons first.
    private(set) var reasons: [String] = []

    /// - Parameters:
    ///   - quarantined: The reason why the row is in quarantine.
    ///   - plan: The rules' result for the class, or their error.
    ///   - elsewhere: The user's client replicas without a session on this gateway, with the times last seen.
    ///   - refusals: The write rejections of the user for the object, the newest first.
    init(
        _ account: UserAccount, _ subject: ObjectExplainer.Subject, quarantined: String?, plan: Result<TypePlan, SluiceError>,
        _ sessions: [ObjectExplainer.AskedSession], elsewhere: [ObjectExplainer.AwayClient], _ refusals: [ExplainedRejection]
    ) throws {
        self.subject = subject
        user = account.email ?? account.id
        if account.isDisabled { reasons.append("The user is disabled.") }
        if subject.row == nil {
            reasons.append(
                quarantined.map { "Its row does not fit the class and is in quarantine: \($0)" } ?? "PostgreSQL has no such object.")
        }
        try explain(plan)
        facts.append(JSON.Member("sessions", .array(try sessions.map { try explain($0) })))
        if sessions.isEmpty { reasons.append("The user has no session on this gateway now.") }
        // PostgreSQL does not hold subscription sets: a client sends its set with each session.
        reasons += elsewhere.map { away in
            let name = "\(away.client.rawValue)\(away.file.map { " (Realm's protocol, client file \($0))" } ?? "")"
            return "Device \(name) is offline or on another gateway. Its subscriptions are unknown here. Last seen at \(away.at)."
        }
        let away: [JSON] = elsewhere.map { away in
            [
                "client": .int(Int64(clamping: away.client.rawValue)), "seen_at": .string(away.at),
                "file": away.file.map { .int(Int64(clamping: $0)) } ?? .null,
            ]
        }
        facts.append(JSON.Member("elsewhere", .array(away)))
        facts.append(JSON.Member("refused_writes", .array(refusals.map { explain($0) })))
    }

    private mutating func explain(_ plan: Result<TypePlan, SluiceError>) throws {
        switch plan {
        case .failure(let error):
            reasons.append("The rules reject the session: \(error)")
            facts.append(JSON.Member("rules", ["error": .string("\(error)")]))
        case .success(let plan):
            let type = subject.type
            let read = try verdict(plan.read)
            let write = try verdict(plan.write)
            hidden = plan.hidden(of: type)
            let names = hidden.sorted().map { type.properties[$0].name }
            facts.append(
                JSON.Member(
                    "rules",
                    [
                        "role": .string(plan.role), "read": read.json, "write": write.json, "insert": .bool(plan.insert),
                        "delete": .bool(plan.delete), "hidden_fields": .array(names.map { .string($0) }),
                    ]))
            granted = "; the role '\(plan.role)' permits reading objects with \(read.text)"
            if subject.row != nil, !read.matches {
                reasons.append(
                    "The role '\(plan.role)' permits reading objects with \(read.text); not met: \(read.failing.joined(separator: "; "))"
                )
            }
        }
    }

    private mutating func explain(_ asked: ObjectExplainer.AskedSession) throws -> JSON {
        let session = asked.status
        let queries = try session.queries.map { text in
            Verdict(text, try bind(text).hiding(hidden), subject.row)
        }
        var cuts: [Verdict] = []
        var linked: Verdict?
        var refusal: SluiceError?
        switch asked.narrowed {
        case .success(let narrowed):
            cuts = try narrowed.queries.map { try verdict($0) }
            linked = try narrowed.included.map { try verdict($0) }
        case .failure(let error): refusal = error
        }
        let isHere = session.view.map { view in subject.row.map { view.matches($0) } ?? false } ?? false
        let name = "\(session.summary.client.rawValue)\(asked.client.note)"
        let device = "Device \(name)"
        if isHere {
            let met = queries.indices.first { queries[$0].matches && ($0 >= cuts.count || cuts[$0].matches) }
            let asked = met.map { "by the query \(queries[$0].text)" } ?? "as an included link or a member of a limited query"
            let cut = (met.map { $0 < cuts.count ? cuts[$0] : nil } ?? linked)?.text ?? "TRUEPREDICATE"
            let narrowed = cut == "TRUEPREDICATE" ? "" : ", which the rules narrow by \(cut)"
            reasons.append("\(device) has it, \(asked)\(narrowed)\(granted).")
        } else if let refusal {
            reasons.append("The rules reject the subscriptions of device \(name): \(refusal)")
        } else if session.summary.version == 0 {
            reasons.append("\(device) has not sent a subscription set yet.")
        } else if queries.isEmpty, linked == nil {
            reasons.append("\(device) does not subscribe to the class.")
        } else if subject.row != nil, !queries.contains(where: \.matches) {
            let failing = queries.map { "\($0.text) (not met: \($0.failing.joined(separator: "; ")))" }
            if !failing.isEmpty { reasons.append("\(device) does not subscribe to it: \(failing.joined(separator: ", ")).") }
            if let linked { reasons.append(explain(linked, device, isLive: session.summary.isLive)) }
        } else if let cut = zip(queries, cuts).first(where: { $0.matches && !$1.matches }), subject.row != nil,
            !zip(queries, cuts).contains(where: { $0.matches && $1.matches })
        {
            reasons.append(
                "\(device) subscribes to it by \(cut.0.text), which the rules narrow by \(cut.1.text); not met: "
                    + cut.1.failing.joined(separator: "; "))
        } else if !session.summary.isLive {
            reasons.append("\(device) is receiving the bootstrap of version \(session.summary.version) of its subscriptions.")
        } else if subject.row != nil {
            reasons.append(
                "\(device) subscribes to it but does not have it, because of the rules or a limit."
            )
        }
        let summary = session.summary
        let members: JSON = [
            "client": .int(Int64(clamping: summary.client.rawValue)), "version": .int(Int64(clamping: summary.version)),
            "live": .bool(summary.isLive), "has_object": .bool(isHere), "queries": .array(queries.map(\.json)),
            "narrowed": .array(cuts.map(\.json)), "linked": linked?.json ?? .null, "refused": refusal.map { .string("\($0)") } ?? .null,
        ]
        return .object(asked.client.members + (members.members ?? []))
    }

    /// Returns the reason why an object is not included by a link.
    ///
    /// - Parameter linked: The condition of the rules for included objects.
    private func explain(_ linked: Verdict, _ device: String, isLive: Bool) -> String {
        let begin = "\(device) receives objects of the class as included links"
        if !linked.matches {
            return "\(begin), which the rules narrow by \(linked.text); not met: \(linked.failing.joined(separator: "; "))"
        }
        return isLive
            ? "\(begin), but not this one, because of the rules or because no object of its view links to it."
            : "\(begin), and its bootstrap is running."
    }

    private func verdict(_ text: String) throws -> Verdict {
        Verdict(text, try bind(text), subject.row)
    }

    private func bind(_ text: String) throws -> Predicate {
        try Query.parse(text).predicate(on: subject.type, in: subject.schema)
    }

    private mutating func explain(_ refusal: ExplainedRejection) -> JSON {
        let rule = refusal.rule.map { ", decided by \($0)" } ?? ""
        reasons.append("A write by device \(refusal.client) was undone at \(refusal.at)\(rule): \(refusal.reason)")
        return [
            "at": .string(refusal.at), "client": .int(Int64(clamping: refusal.client.rawValue)), "code": .int(Int64(refusal.code.rawValue)),
            "reason": .string(refusal.reason), "rule": refusal.rule.map { .string($0) } ?? .null,
        ]
    }

    /// The explanation as JSON:
    /// `{"user", "type", "id", "exists", "because": [sentence], "rules": {"role", "read": {"query", "matches", "failing"}, …},`
    /// `"sessions": [{"protocol", "sdk", "realm_core", "app", "file", "client", "version", "live", "has_object", "queries": […],`
    /// `"narrowed": […], "linked", "refused"}],`
    /// `"elsewhere": [{"client", "seen_at", "file"}], "refused_writes": [{"at", "client", "code", "reason", "rule"}]}`
    var json: JSON {
        let head: [JSON.Member] = [
            JSON.Member("user", .string(user)), JSON.Member("type", .string(subject.type.name)),
            JSON.Member("id", .string(subject.key.keyText)), JSON.Member("exists", .bool(subject.row != nil)),
            JSON.Member("because", .array(reasons.map { .string($0) })),
        ]
        return .object(head + facts)
    }
}

extension Value {
    /// The primary key as `sluice query run` prints it and `sluice why` reads it. Strings are unquoted and integers decimal. ObjectIds and
    /// UUIDs use lower-case hexadecimal digits.
    package var keyText: String {
        switch self {
        case .string(let text): text
        case .int(let number): "\(number)"
        case .objectId(let id): id.description
        case .uuid(let id): id.description
        default: ExtendedJSON.json(self).text
        }
    }
}
