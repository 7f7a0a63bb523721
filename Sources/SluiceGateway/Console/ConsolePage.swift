/// The frame of all console pages. It loads no script, font or image.
struct ConsolePage: Sendable {
    var title: String
    var body: HTML
    /// The seconds until the browser refreshes; nil for never.
    var refresh: Int?

    var html: HTML {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        \(refresh.map { seconds -> HTML in "<meta http-equiv=\"refresh\" content=\"\(seconds)\">\n" } ?? "")\
        <title>\(title)</title>
        <style>\(Self.style)</style>
        </head>
        <body>
        \(body)</body>
        </html>

        """
    }

    static func section(_ id: String, _ title: String, _ content: HTML) -> HTML {
        "<section aria-labelledby=\"\(id)\">\n<h2 id=\"\(id)\">\(title)</h2>\n\(content)</section>\n"
    }

    private static let style: HTML = """
        :root{color-scheme:light dark}
        body{font:1rem/1.4 system-ui,sans-serif;max-width:80rem;margin:0 auto;padding:.5rem 1rem}
        h1{font-size:1.4rem;margin:.3rem 0}h2{font-size:1.1rem;margin:1.4rem 0 .3rem}
        p{margin:.3rem 0;overflow-wrap:anywhere}
        .good,.bad{border-left:.4rem solid #2a2;padding-left:.6rem}.bad{border-color:#d33}
        .wide{overflow-x:auto}
        table{border-collapse:collapse;width:100%}
        caption{text-align:left;opacity:.8;padding:.2rem 0}
        th,td{text-align:left;vertical-align:top;padding:.2rem .8rem .2rem 0;border-bottom:1px solid #8886}
        .long{display:block;min-width:14rem;overflow-wrap:anywhere}
        data{font-variant-numeric:tabular-nums}data,time{white-space:nowrap}
        code,pre{font-family:ui-monospace,monospace;font-size:.9em}pre{white-space:pre-wrap;overflow-wrap:anywhere}
        label{display:block;margin:.5rem 0}
        input{display:block;box-sizing:border-box;width:100%;max-width:40rem;font:inherit;padding:.3rem}
        button{font:inherit;padding:.3rem 1rem}
        """
}
