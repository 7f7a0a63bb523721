extension Unicode.Scalar {
    /// `true` for control characters and those that reverse the text direction. On a page or a terminal they would change other text.
    package var changesOtherText: Bool {
        switch self {
        case "\u{0}"..."\u{1F}", "\u{7F}"..."\u{9F}", "\u{200E}", "\u{200F}", "\u{202A}"..."\u{202E}", "\u{2066}"..."\u{2069}": true
        default: false
        }
    }
}
